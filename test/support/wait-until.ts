import { setTimeout } from 'node:timers/promises'

/** The longest wait, in milliseconds. A time-out of the test runner ends neither the loop nor the process. */
const MAX_WAIT_MS = 60_000

/** Waits until it is so, and leaves the processor to what is waited for. */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not so within ${MAX_WAIT_MS} ms: ${String(condition)}`)
    await setTimeout(1)
  }
}
