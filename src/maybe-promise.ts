/** A result that is there at once, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Limits how long a call may take; a later result is ignored. One that is there at once needs no promise or timer. */
export function withDeadline<T>(result: T | PromiseLike<T>, ms: number, createError: () => unknown): MaybePromise<T> {
  if (!isPromiseLike(result)) return result
  // `Promise.race` and `finally` would make five more promises for each call of a store.
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(createError()), ms)
    function unlessLate<V>(settle: (value: V) => void): (value: V) => void {
      return (value) => {
        clearTimeout(timer)
        settle(value)
      }
    }
    // Adopted first: a thenable may settle with another one that never does.
    Promise.resolve(result).then(unlessLate(resolve), unlessLate(reject))
  })
}

/** Goes on with a result: at once if it is there, as promises are dear. */
export function andThen<T, U>(result: MaybePromise<T>, goOn: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return result instanceof Promise ? result.then(goOn) : goOn(result)
}

/** Calls; passes a thrown or rejected error to `onError`, which ignores it by default. The only catch-all. */
export function attempt(call: () => unknown, onError: (thrown: unknown) => void = () => undefined): void {
  try {
    const result = call()
    // Adopted first, too: nobody would hold the other one.
    if (isPromiseLike(result)) Promise.resolve(result).then(undefined, onError)
  } catch (thrown) {
    onError(thrown)
  }
}

function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
}
