import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { scheduleTask, hasUrgentBudget } from '../src/scheduler.ts'
import { blockEventLoop } from './support/event-loop.ts'

/** Counts the rounds of the event loop while the test runs. */
function countTicks(t: TestContext): () => number {
  let ticks = 0
  let next = setImmediate(function count() {
    ticks++
    next = setImmediate(count)
  })
  t.after(() => clearImmediate(next))
  return () => ticks
}

/** Makes calls that each do so, and says in which round each was made. */
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

suite('calls in later rounds', () => {
  test('are made in the order in which they were asked for, the urgent ones first', async () => {
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
    ['longer than its share', () => blockEventLoop(3)],
    [
      'longer with what it leaves to promises and ticks',
      () => {
        blockEventLoop(0.2)
        process.nextTick(() => void Promise.resolve().then(() => blockEventLoop(3)))
      },
    ],
  ] as const) {
    test(`have a round each if each takes ${what}`, async (t) => {
      assert.equal(new Set(await recordTicks(t, 5, act)).size, 5)
    })
  }

  test('share rounds if they take little, however many wait', async (t) => {
    const count = 20_000
    const rounds = await recordTicks(t, count, () => undefined)
    assert.ok(new Set(rounds).size < count / 20, `${count} calls in ${new Set(rounds).size} rounds`)
  })

  test('are made in rounds of their own if one call asks for the next', async (t) => {
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

  test('are made though one of them throws', async () => {
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

  test('are made in the async context of none that asks', async () => {
    const context = new AsyncLocalStorage<string>()
    const found = await new Promise((resolve) => {
      context.run('of a request', () => scheduleTask(() => resolve(context.getStore())))
    })
    assert.equal(found, undefined)
  })

  test('need not wait if they are urgent and the round is free: until its time is over, or another one waits', async () => {
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
