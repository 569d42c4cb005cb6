import { setImmediate } from 'node:timers/promises'

/** The longest wait, in milliseconds. A time-out of the test runner ends neither the loop nor the process. */
const MAX_WAIT_MS = 60_000

/** Lets the event loop turn until it is so. */
export async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`not so within ${MAX_WAIT_MS} ms: ${String(isSo)}`)
    await setImmediate()
  }
}
