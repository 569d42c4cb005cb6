import { performance as nodePerformance } from 'node:perf_hooks'
import process from 'node:process'
import timers from 'node:timers'
import { scheduler } from 'node:timers/promises'
import { isProxy } from 'node:util/types'

type AnyFunction = (...args: never[]) => unknown
type SetTimer = <Args extends unknown[]>(run: (...args: Args) => void, ms: number, ...args: Args) => NodeJS.Timeout
type ClearTimer = (timer: NodeJS.Timeout | undefined) => void
type Schedule = (run: () => void) => unknown

/**
 * Binds one of Node's functions before a test can replace it with a fake. Fake timers replace the globals (Jest,
 * Vitest), the members of `node:timers` (node:test), or both of these and `performance.now` (sinon). If they dropped a
 * callback of the service, the queue that waits for the callback would stall.
 */
function bindNative<Owner, Name extends keyof Owner & string>(
  owner: Owner,
  name: Name,
  fallback: AnyFunction = (...args) => (owner[name] as AnyFunction)(...args),
): Owner[Name] {
  const method = owner[name] as AnyFunction
  // A fake that is already installed must not be bound. Fakes are proxies, or have members or names of their own.
  const isNative = method.name === name && Object.keys(method).length === 0 && !isProxy(method)
  return (isNative ? method.bind(owner) : fallback) as Owner[Name]
}

export const setTimeout: SetTimer = bindNative(timers, 'setTimeout')
export const setInterval: SetTimer = bindNative(timers, 'setInterval')
export const clearTimeout: ClearTimer = bindNative(timers, 'clearTimeout')
export const clearInterval: ClearTimer = bindNative(timers, 'clearInterval')

// No test framework fakes `scheduler.yield`, which is an immediate too.
export const setImmediate: Schedule = bindNative(timers, 'setImmediate', (run: () => void) =>
  scheduler.yield().then(run),
)

/**
 * Jest might fake `nextTick` before any module is loaded. In that case, callbacks run in the next tick of the event
 * loop.
 */
export const nextTick: Schedule = bindNative(process, 'nextTick', setImmediate)

export const performance: { readonly now: () => number } = { now: bindNative(nodePerformance, 'now') }

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Resolves in the next tick of the event loop. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
