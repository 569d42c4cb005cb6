import { AsyncResource } from 'node:async_hooks'
import { nextTick, performance, setImmediate } from './timers.ts'

type Call = () => void

interface Queue {
  /** How much time of a round its calls get. A call that has begun may take longer. */
  readonly roundMs: number
  /** The calls of this round, the oldest last. */
  due: Call[]
  /** Those that came after, the oldest first. */
  later: Call[]
}

const urgent: Queue = { roundMs: 2, due: [], later: [] }
const patient: Queue = { roundMs: 0.3, due: [], later: [] }
/** After so much time, what the calls have left to promises and ticks runs, and counts as their time too. */
const PART_MS = 0.1
/** The context of no request: calls of many share a round. */
const neutral = new AsyncResource('plant-store')
const settled = Promise.resolve()
let isRoundSet = false
/** When the time of the urgent calls of this round is over; 0 before the first. */
let urgentUntil = 0

/** Calls in a later round of the event loop. Each round gives such calls little time, and the urgent ones go first. */
export function inLaterRound(call: Call, isUrgent = false): void {
  const queue = isUrgent ? urgent : patient
  queue.later.push(call)
  setRound()
}

/** Long work in steps: it yields after each. */
export type Steps<Result> = Generator<undefined, Result>

export function doNow<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

export async function doInRounds<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    await laterRound()
    const until = performance.now() + patient.roundMs
    do {
      const step = steps.next()
      if (step.done === true) return step.value
    } while (performance.now() < until)
  }
}

export const laterRound = (): Promise<void> => new Promise((resolve) => inLaterRound(resolve))

/** Whether this round still has time for an urgent call, so that it need not wait for a later one. */
export function isRoundFree(): boolean {
  setRound()
  const now = performance.now()
  if (urgentUntil === 0) urgentUntil = now + urgent.roundMs
  return now < urgentUntil && isEmpty(urgent)
}

function setRound(): void {
  if (isRoundSet) return
  isRoundSet = true
  neutral.runInAsyncScope(setImmediate, undefined, runRound)
}

function runRound(): void {
  advance(urgent)
  const urgentMs = urgentUntil === 0 ? urgent.roundMs : urgentUntil - performance.now()
  // However long the other work of this round has taken.
  run(urgent.due, Math.max(urgentMs, patient.roundMs), () => {
    run(patient.due, patient.roundMs, () => {
      // Not before: what came in this round may be of a connection that has had its turn in it.
      advance(patient)
      urgentUntil = 0
      isRoundSet = false
      if (!isEmpty(urgent) || !isEmpty(patient)) setRound()
    })
  })
}

const isEmpty = ({ due, later }: Queue): boolean => due.length + later.length === 0

function advance(queue: Queue): void {
  if (queue.due.length > 0) return
  queue.due = queue.later.reverse()
  queue.later = []
}

/** Makes calls that are due, at least one, for so long. */
function run(due: Call[], ms: number, done: () => void): void {
  if (due.length === 0) return done()
  const until = performance.now() + ms
  function runPart(): void {
    const partEnd = performance.now() + PART_MS
    try {
      do due.pop()!()
      while (due.length > 0 && performance.now() < partEnd)
    } finally {
      void settled.then(() => nextTick(goOn))
    }
  }
  function goOn(): void {
    if (due.length > 0 && performance.now() < until) runPart()
    else done()
  }
  runPart()
}
