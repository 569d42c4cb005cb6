import { lookup as dnsLookup, type LookupOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { nextTick } from '../timers.ts'

type LookupCallback = Parameters<LookupFunction>[2]
type LookupResult = Parameters<LookupCallback>

/** The lookups in flight, by name and options, and who waits for each. */
const pendingLookups = new Map<string, LookupCallback[]>()
/** The last answers. */
const lastResults = new Map<string, LookupResult>()
const idleCallbacks: (() => void)[] = []
let isStopped = false

/**
 * Looks up a host for a socket. The operating system's resolver can take half a minute if the name servers don't answer,
 * it can't be canceled, and the process can't exit meanwhile. So sockets to one host share a lookup, and none begins
 * after `endLookups()`: sockets then get the last answer.
 */
export const lookup: LookupFunction = (hostname, options, callback) => {
  const key = `${hostname} ${JSON.stringify(options)}`
  const callbacks = pendingLookups.get(key)
  if (callbacks !== undefined) {
    callbacks.push(callback)
  } else if (isStopped) {
    const error = new Error(`The process is ending, so ${hostname} is not looked up.`)
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

/** Begins no more lookups. For a process that ends, where several modules share its resolver. */
export function stopLookups(): void {
  isStopped = true
}

export const hasPendingLookups = (): boolean => pendingLookups.size > 0

/** Settles once the lookups in flight have ended. */
export async function waitForLookups(): Promise<void> {
  if (pendingLookups.size > 0) await new Promise<void>((resolve) => idleCallbacks.push(resolve))
}
