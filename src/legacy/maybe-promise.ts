import { clearTimeout, setTimeout } from './timers.ts'

/** A value, or a promise for the value. */
export type MaybePromise<T> = T | Promise<T>

/** The promise class of async functions. The global `Promise` might have been replaced, for example by zone.js. */
export const NativePromise: PromiseConstructor = (async () => Promise.resolve())().constructor as PromiseConstructor

/**
 * Limits the duration of a call: if the promise that the call returned doesn't settle within `ms`, rejects with an
 * error from `createError` and ignores the late result. Synchronous results skip the promise and the timer.
 */
export function withDeadline<T>(result: T | PromiseLike<T>, ms: number, createError: () => unknown): MaybePromise<T> {
  if (!isPromiseLike(result)) return result
  // `Promise.race` and `finally` would create five more promises for each store call.
  return new NativePromise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(createError()), ms)
    function clearTimerThen<V>(settle: (value: V) => void): (value: V) => void {
      return (value) => {
        clearTimeout(timer)
        settle(value)
      }
    }
    // Wrap it in a native promise, which calls back only with the final value. A thenable may call back with another
    // thenable that never settles, and then the timer would already be cleared.
    NativePromise.resolve(result).then(clearTimerThen(resolve), clearTimerThen(reject))
  })
}

type Callback<T, U, S> = (value: T, state: S) => MaybePromise<U>

/**
 * Calls `callback` with a result: immediately if the result isn't a promise, because promises are expensive. Closures
 * are too, so values that the callback needs can be passed as `state`. Recognizes only native promises: results of the
 * host's functions have to pass through {@link withDeadline} first, which converts thenables.
 */
export function chain<T, U, S>(
  result: MaybePromise<T>,
  callback: Callback<T, U, S>,
  state = undefined as S,
): MaybePromise<U> {
  return result instanceof NativePromise ? chainPromise(result, callback, state) : callback(result, state)
}

/**
 * A separate function, so that `chain` doesn't allocate its arguments on the heap for a closure that it rarely needs.
 */
const chainPromise = <T, U, S>(result: Promise<T>, callback: Callback<T, U, S>, state: S): Promise<U> =>
  result.then((value) => callback(value, state))

/**
 * Calls a function. Errors that the function throws or rejects with are passed to `onError`, or ignored by default. The
 * service has no other catch-all.
 */
export function callSafely<S>(
  call: (state: S) => unknown,
  onError: (error: unknown, state: S) => void = () => undefined,
  state: S = undefined as S,
): void {
  try {
    const result = call(state)
    // Wrap it in a native promise first: a thenable can resolve to another thenable, whose rejection would be
    // unhandled.
    if (isPromiseLike(result)) NativePromise.resolve(result).then(undefined, (error: unknown) => onError(error, state))
  } catch (error) {
    onError(error, state)
  }
}

export const isPromiseLike = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
