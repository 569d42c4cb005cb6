import { setTimeout } from 'node:timers/promises'

/** The maximum wait in milliseconds. A timeout of the test runner would end neither the loop nor the process. */
const MAX_WAIT_MS = 60_000

/** Polls a condition until it's true, and sleeps between the checks. */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`The condition wasn't met within ${MAX_WAIT_MS} ms: ${String(condition)}`)
    await setTimeout(1)
  }
}
