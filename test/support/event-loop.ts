/** Keeps the event loop from turning, as a machine does that is busy with something else. */
export function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

/** How many timers keep the process from ending. */
export function countTimers(): number {
  return process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
}
