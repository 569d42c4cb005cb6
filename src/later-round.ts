import { AsyncResource } from 'node:async_hooks'
import { nextTick } from 'node:process'

/** Calls that wait for a round of the event loop. */
interface Queue {
  /** How much time of a round they get, in milliseconds. A call that has begun may take longer. */
  readonly roundMs: number
  /** The calls of this round, the oldest last. */
  due: (() => void)[]
  /** The calls that came after those, the oldest first. */
  later: (() => void)[]
}

const urgent: Queue = { roundMs: 2, due: [], later: [] }
const patient: Queue = { roundMs: 0.3, due: [], later: [] }

/** The context of no request: calls of many share a round. */
const neutral = new AsyncResource('plant-store')

const settled = Promise.resolve()

let isRoundSet = false

/**
 * Makes a call in a later round of the event loop, after the calls that came before. Work that may go on without end,
 * such as a long list whose client reads as fast as it can, is divided in this way: in each round all such work gets
 * little time, so rounds stay short, and other requests get their share of every round.
 * @param isUrgent whether the call is for a client that takes no more than its turn: it then goes before all others
 */
export function inLaterRound(call: () => void, isUrgent = false): void {
  const queue = isUrgent ? urgent : patient
  queue.later.push(call)
  if (!isRoundSet) setRound()
}

function setRound(): void {
  isRoundSet = true
  neutral.runInAsyncScope(setImmediate, undefined, runRound)
}

function runRound(): void {
  advance(urgent)
  run(urgent, () => {
    run(patient, () => {
      // Not before: what came in this round may be of a connection that has had its turn in it.
      advance(patient)
      isRoundSet = false
      if ([urgent, patient].some(({ due, later }) => due.length + later.length > 0)) setRound()
    })
  })
}

function advance(queue: Queue): void {
  if (queue.due.length > 0) return
  queue.due = queue.later.reverse()
  queue.later = []
}

/** Makes calls that are due, at least one, while there is time. */
function run(queue: Queue, done: () => void): void {
  const until = performance.now() + queue.roundMs
  function goOn(): void {
    if (queue.due.length > 0 && performance.now() < until) next()
    else done()
  }
  function next(): void {
    try {
      queue.due.pop()!()
    } finally {
      // The time of a call includes what it leaves to promises and ticks.
      void settled.then(() => nextTick(goOn))
    }
  }
  if (queue.due.length > 0) next()
  else done()
}
