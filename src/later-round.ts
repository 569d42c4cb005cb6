/** How much time of each round of the event loop the calls get. A call that has begun may take longer. */
const ROUND_MS = 0.1

/** The calls that wait, the oldest first. For each there is an immediate: it makes the oldest call, or waits on. */
const waiting: (() => void)[] = []

/** When the calls of this round end; undefined before the first. */
let roundEnd: number | undefined

/**
 * Makes a call in a later round of the event loop. Work that may go on without end, such as a long list whose client
 * reads as fast as it can, is divided in this way: other requests get their share of every round.
 */
export function inLaterRound(call: () => void): void {
  waiting.push(call)
  setImmediate(callNext)
}

/** Node ends a callback and its microtasks before the next immediate, so the time of a call includes its effects. */
function callNext(): void {
  if (roundEnd === undefined) {
    roundEnd = performance.now() + ROUND_MS
    // This is the first immediate of the next round.
    setImmediate(() => (roundEnd = undefined))
  }
  if (performance.now() < roundEnd) waiting.shift()!()
  else setImmediate(callNext)
}
