import { setTimeout as sleep } from 'node:timers/promises'

/** The maximum wait in milliseconds. It's below the timeouts of tests and suites, which don't say what the test awaits. */
const MAX_WAIT_MS = 30_000

/** Polls a condition until it's true, and sleeps between the checks. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, intervalMs = 1): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`The condition wasn't met within ${MAX_WAIT_MS} ms: ${String(condition)}`)
    await sleep(intervalMs)
  }
}

/**
 * Waits for a promise.
 * @param describe returns what happened before, for the error that's thrown if the promise doesn't settle in time
 */
export async function limitWait<T>(promise: Promise<T>, describe: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_, reject) => {
    const fail = (): void => reject(new Error(`Nothing happened for ${MAX_WAIT_MS} ms after ${describe()}`))
    timer = setTimeout(fail, MAX_WAIT_MS)
  })
  return Promise.race([promise, expired]).finally(() => clearTimeout(timer))
}
