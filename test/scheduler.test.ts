import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { scheduleTask, hasUrgentBudget } from '../src/scheduler.ts'
import { blockEventLoop } from './support/event-loop.ts'

/** Counts event-loop ticks while the test runs. */
function countTicks(t: TestContext): () => number {
  let ticks = 0
  let next = setImmediate(function count() {
    ticks++
    next = setImmediate(count)
  })
  t.after(() => clearImmediate(next))
  return () => ticks
}

/** Schedules tasks that each run the action. Resolves with the event-loop tick in which each task ran. */
async function recordTicks(t: TestContext, calls: number, action: () => void): Promise<number[]> {
  const getTick = countTicks(t)
  const ticks: number[] = []
  await new Promise<void>((resolve) => {
    for (let i = 0; i < calls; i++) {
      scheduleTask(() => {
        action()
        if (ticks.push(getTick()) === calls) resolve()
      })
    }
    assert.deepEqual(ticks, [])
  })
  return ticks
}

suite('scheduled tasks', () => {
  test('scheduled tasks run in order, but after urgent tasks', async () => {
    const made: string[] = []
    await new Promise<void>((resolve) => {
      scheduleTask(() => made.push('first'))
      scheduleTask(() => made.push('first urgent'), true)
      scheduleTask(() => {
        made.push('last')
        resolve()
      })
      scheduleTask(() => made.push('last urgent'), true)
      assert.deepEqual(made, [])
    })
    assert.deepEqual(made, ['first urgent', 'last urgent', 'first', 'last'])
  })

  for (const [what, act] of [
    ['exceeds the time budget', () => blockEventLoop(3)],
    [
      'exceeds the time budget together with its promises and nextTick callbacks',
      () => {
        blockEventLoop(0.2)
        process.nextTick(() => void Promise.resolve().then(() => blockEventLoop(3)))
      },
    ],
  ] as const) {
    test(`run in separate event-loop ticks if each ${what}`, async (t) => {
      assert.equal(new Set(await recordTicks(t, 5, act)).size, 5)
    })
  }

  test('short scheduled tasks share event-loop ticks', async (t) => {
    const count = 20_000
    const rounds = await recordTicks(t, count, () => undefined)
    assert.ok(new Set(rounds).size < count / 20, `${count} tasks ran in ${new Set(rounds).size} ticks`)
  })

  test('scheduled tasks run in separate event-loop ticks if each task schedules the next task', async (t) => {
    const round = countTicks(t)
    const rounds: number[] = []
    await new Promise<void>((resolve) => {
      function next(): void {
        if (rounds.push(round()) < 5) scheduleTask(next)
        else resolve()
      }
      next()
    })
    assert.equal(new Set(rounds).size, 5)
  })

  test('a scheduled task runs even if an earlier task has thrown', async () => {
    const caught: unknown[] = []
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').once('uncaughtException', (error) => caught.push(error.message))
    await new Promise<void>((resolve) => {
      scheduleTask(() => {
        throw new Error('of a host')
      })
      scheduleTask(resolve)
    })
    for (const listener of listeners) process.on('uncaughtException', listener)
    assert.deepEqual(caught, ['of a host'])
  })

  test('a scheduled task does not inherit the async context of the code that scheduled it', async () => {
    const context = new AsyncLocalStorage<string>()
    const found = await new Promise((resolve) => {
      context.run('of a request', () => scheduleTask(() => resolve(context.getStore())))
    })
    assert.equal(found, undefined)
  })

  test('hasUrgentBudget() is true while the event-loop tick has time left and no task is queued', async () => {
    const nextRound = (): Promise<void> => new Promise((resolve) => scheduleTask(resolve))
    await nextRound()
    assert.ok(hasUrgentBudget())
    blockEventLoop(3)
    assert.ok(!hasUrgentBudget())
    await nextRound()
    assert.ok(hasUrgentBudget())
    const made = new Promise<void>((resolve) => scheduleTask(resolve, true))
    assert.ok(!hasUrgentBudget())
    await made
  })
})
