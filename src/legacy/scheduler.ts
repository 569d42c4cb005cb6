import { AsyncResource } from 'node:async_hooks'
import { nextTick, performance, setImmediate } from './timers.ts'

type Task = () => void

interface Queue {
  /** How long the tasks of this queue may run in each event-loop tick. A task that takes longer isn't interrupted. */
  readonly budgetMs: number
  /** The tasks to run in the current tick, oldest last. */
  ready: Task[]
  /** The tasks for a later tick, oldest first. */
  pending: Task[]
}

const urgentQueue: Queue = { budgetMs: 2, ready: [], pending: [] }
const normalQueue: Queue = { budgetMs: 0.3, ready: [], pending: [] }
/**
 * How long a batch of tasks runs. Each batch is followed by the promise and `nextTick` callbacks that its tasks queued.
 * Their time counts toward the budget too.
 */
const BATCH_MS = 0.1
/** Tasks from many requests share a tick, so ticks don't run in the async context of any request. */
const sharedContext = new AsyncResource('plant-store')
const resolvedPromise = Promise.resolve()
let isTickScheduled = false
/** When the urgent budget of the current tick ends; 0 until `hasUrgentBudget` is called in the tick. */
let urgentDeadline = 0

/** Runs a task in a later event-loop tick. Each tick spends only a limited time on tasks, urgent ones first. */
export function scheduleTask(task: Task, isUrgent = false): void {
  const queue = isUrgent ? urgentQueue : normalQueue
  queue.pending.push(task)
  scheduleTick()
}

/** A long computation that yields often, so that other work can run in between. */
export type CooperativeTask<Result> = Generator<undefined, Result>

/** Runs a cooperative task synchronously. */
export function runToCompletion<Result>(task: CooperativeTask<Result>): Result {
  let step = task.next()
  while (step.done !== true) step = task.next()
  return step.value
}

/** Runs a cooperative task for a fraction of a millisecond in each event-loop tick. */
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

/** Whether urgent work can run immediately: the current tick has budget left, and no urgent task is waiting. */
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

async function runTick(): Promise<void> {
  promotePending(urgentQueue)
  const urgentBudgetMs = urgentDeadline === 0 ? urgentQueue.budgetMs : urgentDeadline - performance.now()
  // Urgent work that ran without waiting also counts toward the urgent budget, but queued urgent tasks always get some
  // time.
  await runTasks(urgentQueue.ready, Math.max(urgentBudgetMs, normalQueue.budgetMs))
  await runTasks(normalQueue.ready, normalQueue.budgetMs)
  // Don't do this earlier: a task that was added in this tick may belong to a connection that already had its turn in
  // the tick.
  promotePending(normalQueue)
  urgentDeadline = 0
  isTickScheduled = false
  if (!isEmpty(urgentQueue) || !isEmpty(normalQueue)) scheduleTick()
}

const isEmpty = ({ ready, pending }: Queue): boolean => ready.length + pending.length === 0

function promotePending(queue: Queue): void {
  if (queue.ready.length > 0) return
  queue.ready = queue.pending.reverse()
  queue.pending = []
}

/** Runs tasks until the time is up. Runs at least one task if there are any. */
async function runTasks(tasks: Task[], budgetMs: number): Promise<void> {
  const deadline = performance.now() + budgetMs
  while (tasks.length > 0) {
    await runBatch(tasks)
    if (performance.now() >= deadline) return
  }
}

/**
 * Runs tasks for {@link BATCH_MS}, and resolves after the promise and `nextTick` callbacks that they queued have run.
 * The tasks run in a callback of their own, so that an error in one is an uncaught exception and doesn't reject this
 * promise.
 */
function runBatch(tasks: Task[]): Promise<void> {
  return new Promise((resolve) => {
    nextTick(() => {
      const deadline = performance.now() + BATCH_MS
      try {
        do tasks.pop()!()
        while (tasks.length > 0 && performance.now() < deadline)
      } finally {
        void resolvedPromise.then(() => nextTick(resolve))
      }
    })
  })
}
