/** How long pages are read in one turn of the event loop, unless one of them takes longer. */
const TURN_MS = 2

/** Those that wait, first come first. For each there is an immediate that calls one of them, or comes again. */
const waiting: (() => void)[] = []

/** Until when pages are read in this turn; undefined before the first. */
let turnEnd: number | undefined

/**
 * Settles in a later turn of the event loop, when a page of a long list may be read. However many lists are read as fast
 * as their clients can, other requests get their share of every turn.
 */
export function pageTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    setImmediate(callNext)
  })
}

/** Node does all that a page brings about at once, up to writing it, before it comes to the next immediate. */
function callNext(): void {
  if (turnEnd === undefined) {
    turnEnd = performance.now() + TURN_MS
    // Comes first in the next turn, as no page of that has been asked for yet.
    setImmediate(() => (turnEnd = undefined))
  }
  if (performance.now() < turnEnd) waiting.shift()!()
  else setImmediate(callNext)
}
