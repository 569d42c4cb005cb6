const TICK_MS = 10

/**
 * Returns a clock in milliseconds that stands still while the event loop is blocked or the process doesn't get CPU
 * time. Tests can compare timers with it on a busy machine.
 */
export function createProcessClock(): () => number {
  let ticks = 0
  setInterval(() => ticks++, TICK_MS).unref()
  return () => ticks * TICK_MS
}
