import { AsyncResource } from 'node:async_hooks'
import { nextTick, performance, setImmediate } from './timers.ts'

type Task = () => void

interface Queue {
  /** How much time of a round its calls get. A call that has begun may take longer. */
  readonly budgetMs: number
  /** The calls of this round, the oldest last. */
  ready: Task[]
  /** Those that came after, the oldest first. */
  pending: Task[]
}

const urgentQueue: Queue = { budgetMs: 2, ready: [], pending: [] }
const normalQueue: Queue = { budgetMs: 0.3, ready: [], pending: [] }
/** After so much time, what the calls have left to promises and ticks runs, and counts as their time too. */
const BATCH_MS = 0.1
/** The context of no request: calls of many share a round. */
const sharedContext = new AsyncResource('plant-store')
const resolvedPromise = Promise.resolve()
let isTickScheduled = false
/** When the time of the urgent calls of this round is over; 0 before the first. */
let urgentDeadline = 0

/** Calls in a later round of the event loop. Each round gives such calls little time, and the urgent ones go first. */
export function scheduleTask(task: Task, isUrgent = false): void {
  const queue = isUrgent ? urgentQueue : normalQueue
  queue.pending.push(task)
  scheduleTick()
}

/** Long work in steps: it yields after each. */
export type CooperativeTask<Result> = Generator<undefined, Result>

export function runToCompletion<Result>(task: CooperativeTask<Result>): Result {
  let step = task.next()
  while (step.done !== true) step = task.next()
  return step.value
}

export async function runInTicks<Result>(task: CooperativeTask<Result>): Promise<Result> {
  for (;;) {
    await waitForTick()
    const deadline = performance.now() + normalQueue.budgetMs
    do {
      const step = task.next()
      if (step.done === true) return step.value
    } while (performance.now() < deadline)
  }
}

export const waitForTick = (): Promise<void> => new Promise((resolve) => scheduleTask(resolve))

/** Whether this round still has time for an urgent call, so that it need not wait for a later one. */
export function hasUrgentBudget(): boolean {
  scheduleTick()
  const now = performance.now()
  if (urgentDeadline === 0) urgentDeadline = now + urgentQueue.budgetMs
  return now < urgentDeadline && isEmpty(urgentQueue)
}

function scheduleTick(): void {
  if (isTickScheduled) return
  isTickScheduled = true
  sharedContext.runInAsyncScope(setImmediate, undefined, runTick)
}

function runTick(): void {
  promotePending(urgentQueue)
  const urgentBudgetMs = urgentDeadline === 0 ? urgentQueue.budgetMs : urgentDeadline - performance.now()
  // However long the other work of this round has taken.
  runTasks(urgentQueue.ready, Math.max(urgentBudgetMs, normalQueue.budgetMs), () => {
    runTasks(normalQueue.ready, normalQueue.budgetMs, () => {
      // Not before: what came in this round may be of a connection that has had its turn in it.
      promotePending(normalQueue)
      urgentDeadline = 0
      isTickScheduled = false
      if (!isEmpty(urgentQueue) || !isEmpty(normalQueue)) scheduleTick()
    })
  })
}

const isEmpty = ({ ready, pending }: Queue): boolean => ready.length + pending.length === 0

function promotePending(queue: Queue): void {
  if (queue.ready.length > 0) return
  queue.ready = queue.pending.reverse()
  queue.pending = []
}

/** Makes calls that are due, at least one, for so long. */
function runTasks(tasks: Task[], budgetMs: number, onDone: () => void): void {
  if (tasks.length === 0) return onDone()
  const deadline = performance.now() + budgetMs
  function runBatch(): void {
    const batchDeadline = performance.now() + BATCH_MS
    try {
      do tasks.pop()!()
      while (tasks.length > 0 && performance.now() < batchDeadline)
    } finally {
      void resolvedPromise.then(() => nextTick(continueOrFinish))
    }
  }
  function continueOrFinish(): void {
    if (tasks.length > 0 && performance.now() < deadline) runBatch()
    else onDone()
  }
  runBatch()
}
