const TICK_MS = 10

/** Blocks the event loop, as a busy machine does. */
export function blockEventLoop(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

/**
 * Returns a clock in milliseconds that stands still while the event loop is blocked or the process doesn't get CPU
 * time. Tests can compare timers with it on a busy machine.
 */
export function createProcessClock(): () => number {
  let ticks = 0
  setInterval(() => ticks++, TICK_MS).unref()
  return () => ticks * TICK_MS
}

/** Returns the number of timers that keep the process alive. */
export function countTimers(): number {
  return process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
}
