import { lookup as dnsLookup, type LookupOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { nextTick } from '../timers.ts'

type LookupCallback = Parameters<LookupFunction>[2]
type LookupResult = Parameters<LookupCallback>

/** The callbacks of the DNS lookups in flight, by host name and options. */
const pendingLookups = new Map<string, LookupCallback[]>()
/** The last successful result of each lookup. */
const lastResults = new Map<string, LookupResult>()
const idleCallbacks: (() => void)[] = []
let isStopped = false

/**
 * Resolves a host name for a socket. If the name servers don't respond, the operating system's resolver takes up to
 * half a minute, can't be canceled, and keeps the process from exiting. So sockets to the same host share a lookup.
 * After {@link stopLookups}, sockets get the last result instead of starting a lookup.
 */
export const lookup: LookupFunction = (hostname, options, callback) => {
  const key = `${hostname} ${JSON.stringify(options)}`
  const callbacks = pendingLookups.get(key)
  if (callbacks !== undefined) {
    callbacks.push(callback)
  } else if (isStopped) {
    const error = new Error(`Cannot resolve ${hostname}: the process is shutting down.`)
    const result: LookupResult = lastResults.get(key) ?? [error, '']
    nextTick(() => callback(...result))
  } else {
    pendingLookups.set(key, [callback])
    dnsLookup(hostname, options as LookupOptions & { all: false }, (...result) => {
      const pendingCallbacks = pendingLookups.get(key)!
      pendingLookups.delete(key)
      if (result[0] === null) lastResults.set(key, result)
      for (const pendingCallback of pendingCallbacks) pendingCallback(...result)
      if (pendingLookups.size === 0) for (const resolve of idleCallbacks.splice(0)) resolve()
    })
  }
}

/** Prevents new lookups in the whole process. Called when the process shuts down. */
export function stopLookups(): void {
  isStopped = true
}

export const hasPendingLookups = (): boolean => pendingLookups.size > 0

/** Resolves when no lookup is in flight. */
export async function waitForLookups(): Promise<void> {
  if (pendingLookups.size > 0) await new Promise<void>((resolve) => idleCallbacks.push(resolve))
}
