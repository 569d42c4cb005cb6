/**
 * Gives a call at most so many milliseconds. One that answers at once passes through, without a promise or a timer;
 * what one that comes too late says is ignored.
 * @throws what `createError` makes where the time is over
 */
export function withDeadline<T>(result: T | PromiseLike<T>, ms: number, createError: () => Error): T | Promise<T> {
  if (!isPromiseLike(result)) return result
  let timer: NodeJS.Timeout
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(createError()), ms)
  })
  return Promise.race([result, timeout]).finally(() => clearTimeout(timer))
}

function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
}
