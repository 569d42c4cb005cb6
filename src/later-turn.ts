/** How much time of each turn of the event loop the calls get. A call that has begun may take longer. */
const TURN_MS = 0.1

/** The calls that wait, the oldest first. Each has an immediate, which makes the oldest call or waits for another turn. */
const waiting: (() => void)[] = []

/** When the calls of this turn end; undefined before the first. */
let turnEnd: number | undefined

/**
 * Makes a call in a later turn of the event loop. Work that may go on without end, such as a long list whose client reads
 * as fast as it can, is divided in this way: other requests get their share of every turn.
 */
export function inLaterTurn(call: () => void): void {
  waiting.push(call)
  setImmediate(callNext)
}

/** Node finishes a callback and its microtasks before the next immediate, so the time of a call includes its effects. */
function callNext(): void {
  if (turnEnd === undefined) {
    turnEnd = performance.now() + TURN_MS
    // This is the first immediate of the next turn.
    setImmediate(() => (turnEnd = undefined))
  }
  if (performance.now() < turnEnd) waiting.shift()!()
  else setImmediate(callNext)
}
