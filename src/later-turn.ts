/** How long calls are made in one turn of the event loop, unless one of them takes longer. */
const TURN_MS = 0.1

/** Those that wait, first come first. For each there is an immediate that makes one of them, or comes again. */
const waiting: (() => void)[] = []

/** Until when calls are made in this turn; undefined before the first. */
let turnEnd: number | undefined

/**
 * Makes a call in a later turn of the event loop: for what could go on without an end, such as a long list whose client
 * reads as fast as it can. However much of it there is, other requests get their share of every turn.
 */
export function inLaterTurn(call: () => void): void {
  waiting.push(call)
  setImmediate(callNext)
}

/** Node does all that a call brings about at once, up to writing it, before it comes to the next immediate. */
function callNext(): void {
  if (turnEnd === undefined) {
    turnEnd = performance.now() + TURN_MS
    // Comes first in the next turn, as nothing of that has been asked for yet.
    setImmediate(() => (turnEnd = undefined))
  }
  if (performance.now() < turnEnd) waiting.shift()!()
  else setImmediate(callNext)
}
