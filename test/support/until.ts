import { setImmediate } from 'node:timers/promises'

/** Lets the event loop turn until it is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await setImmediate()
}
