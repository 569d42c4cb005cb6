import { clearTimeout, setTimeout } from './timers.ts'

/** A result that is there at once, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** The class of the promises that async functions return, even if the global `Promise` was replaced, as zone.js does. */
export const NativePromise: PromiseConstructor = (async () => Promise.resolve())().constructor as PromiseConstructor

/** Limits how long a call may take; a later result is ignored. One that is there at once needs no promise or timer. */
export function withDeadline<T>(result: T | PromiseLike<T>, ms: number, createError: () => unknown): MaybePromise<T> {
  if (!isPromiseLike(result)) return result
  // `Promise.race` and `finally` would make five more promises for each call of a store.
  return new NativePromise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(createError()), ms)
    function clearTimerThen<V>(settle: (value: V) => void): (value: V) => void {
      return (value) => {
        clearTimeout(timer)
        settle(value)
      }
    }
    // Adopted first: a thenable may settle with another one that never does.
    NativePromise.resolve(result).then(clearTimerThen(resolve), clearTimerThen(reject))
  })
}

type Callback<T, U, S> = (value: T, state: S) => MaybePromise<U>

/**
 * Calls `goOn` with a result: immediately unless it's a promise, because promises are expensive. So are closures, and
 * `state` saves one. The results of a host's functions pass through {@link withDeadline} first, which returns a native
 * promise for any thenable.
 */
export function chain<T, U, S>(
  result: MaybePromise<T>,
  callback: Callback<T, U, S>,
  state = undefined as S,
): MaybePromise<U> {
  return result instanceof NativePromise ? chainPromise(result, callback, state) : callback(result, state)
}

/** In a function of its own: what a closure holds is on the heap from where its function begins. */
const chainPromise = <T, U, S>(result: Promise<T>, callback: Callback<T, U, S>, state: S): Promise<U> =>
  result.then((value) => callback(value, state))

/** Calls; passes a thrown or rejected error to `onError`, which ignores it by default. The only catch-all. */
export function callSafely<S>(
  call: (state: S) => unknown,
  onError: (error: unknown, state: S) => void = () => undefined,
  state: S = undefined as S,
): void {
  try {
    const result = call(state)
    // Adopted first, too: nobody would hold the other one.
    if (isPromiseLike(result)) NativePromise.resolve(result).then(undefined, (error: unknown) => onError(error, state))
  } catch (error) {
    onError(error, state)
  }
}

export const isPromiseLike = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
