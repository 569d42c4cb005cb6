import { lookup as lookUp, type LookupOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { nextTick } from '../timers.ts'

type Callback = Parameters<LookupFunction>[2]
type Result = Parameters<Callback>

/** The lookups in flight, by name and options, and who waits for each. */
const waiting = new Map<string, Callback[]>()
/** The last answers. */
const answers = new Map<string, Result>()
const whenIdle: (() => void)[] = []
let isEnding = false

/**
 * Looks up a host for a socket. The operating system's resolver can take half a minute if the name servers don't answer,
 * it can't be canceled, and the process can't exit meanwhile. So sockets to one host share a lookup, and none begins
 * after `endLookups()`: sockets then get the last answer.
 */
export const lookup: LookupFunction = (hostname, options, callback) => {
  const key = `${hostname} ${JSON.stringify(options)}`
  const callbacks = waiting.get(key)
  if (callbacks !== undefined) {
    callbacks.push(callback)
  } else if (isEnding) {
    const error = new Error(`The process is ending, so ${hostname} is not looked up.`)
    const result: Result = answers.get(key) ?? [error, '']
    nextTick(() => callback(...result))
  } else {
    waiting.set(key, [callback])
    lookUp(hostname, options as LookupOptions & { all: false }, (...result) => {
      const callbacks = waiting.get(key)!
      waiting.delete(key)
      if (result[0] === null) answers.set(key, result)
      for (const each of callbacks) each(...result)
      if (waiting.size === 0) for (const resolve of whenIdle.splice(0)) resolve()
    })
  }
}

/** Begins no more lookups. For a process that ends, where several modules share its resolver. */
export function endLookups(): void {
  isEnding = true
}

export const isLookingUp = (): boolean => waiting.size > 0

/** Settles once the lookups in flight have ended. */
export async function lookupsEnded(): Promise<void> {
  if (waiting.size > 0) await new Promise<void>((resolve) => whenIdle.push(resolve))
}
