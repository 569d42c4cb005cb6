const TICK_MS = 10

/** Keeps the event loop from turning, as a machine does that is busy with something else. */
export function blockEventLoop(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

/**
 * A clock that tells how many milliseconds have passed for this process. What a machine that is busy with something else
 * takes from it does not count, so that timers can be held against it.
 */
export function createProcessClock(): () => number {
  let ticks = 0
  setInterval(() => ticks++, TICK_MS).unref()
  return () => ticks * TICK_MS
}

/** How many timers keep the process from ending. */
export function countTimers(): number {
  return process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
}
