import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { inLaterRound, isRoundFree } from '../src/later-round.ts'
import { block } from './support/event-loop.ts'

/** Counts the rounds of the event loop while the test runs. */
function countRounds(t: TestContext): () => number {
  let rounds = 0
  let next = setImmediate(function count() {
    rounds++
    next = setImmediate(count)
  })
  t.after(() => clearImmediate(next))
  return () => rounds
}

/** Makes calls that each do so, and says in which round each was made. */
async function roundsOf(t: TestContext, calls: number, act: () => void): Promise<number[]> {
  const round = countRounds(t)
  const rounds: number[] = []
  await new Promise<void>((resolve) => {
    for (let i = 0; i < calls; i++) {
      inLaterRound(() => {
        act()
        if (rounds.push(round()) === calls) resolve()
      })
    }
    assert.deepEqual(rounds, [])
  })
  return rounds
}

suite('calls in later rounds', () => {
  test('are made in the order in which they were asked for, the urgent ones first', async () => {
    const made: string[] = []
    await new Promise<void>((resolve) => {
      inLaterRound(() => made.push('first'))
      inLaterRound(() => made.push('first urgent'), true)
      inLaterRound(() => {
        made.push('last')
        resolve()
      })
      inLaterRound(() => made.push('last urgent'), true)
      assert.deepEqual(made, [])
    })
    assert.deepEqual(made, ['first urgent', 'last urgent', 'first', 'last'])
  })

  for (const [what, act] of [
    ['longer than its share', () => block(3)],
    [
      'longer with what it leaves to promises and ticks',
      () => {
        block(0.2)
        process.nextTick(() => void Promise.resolve().then(() => block(3)))
      },
    ],
  ] as const) {
    test(`have a round each if each takes ${what}`, async (t) => {
      assert.equal(new Set(await roundsOf(t, 5, act)).size, 5)
    })
  }

  test('share rounds if they take little, however many wait', async (t) => {
    const count = 20_000
    const rounds = await roundsOf(t, count, () => undefined)
    assert.ok(new Set(rounds).size < count / 20, `${count} calls in ${new Set(rounds).size} rounds`)
  })

  test('are made in rounds of their own if one call asks for the next', async (t) => {
    const round = countRounds(t)
    const rounds: number[] = []
    await new Promise<void>((resolve) => {
      function next(): void {
        if (rounds.push(round()) < 5) inLaterRound(next)
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
      inLaterRound(() => {
        throw new Error('of a host')
      })
      inLaterRound(resolve)
    })
    for (const listener of listeners) process.on('uncaughtException', listener)
    assert.deepEqual(caught, ['of a host'])
  })

  test('are made in the async context of none that asks', async () => {
    const context = new AsyncLocalStorage<string>()
    const found = await new Promise((resolve) => {
      context.run('of a request', () => inLaterRound(() => resolve(context.getStore())))
    })
    assert.equal(found, undefined)
  })

  test('need not wait if they are urgent and the round is free: until its time is over, or another one waits', async () => {
    const nextRound = (): Promise<void> => new Promise((resolve) => inLaterRound(resolve))
    await nextRound()
    assert.ok(isRoundFree())
    block(3)
    assert.ok(!isRoundFree())
    await nextRound()
    assert.ok(isRoundFree())
    const made = new Promise<void>((resolve) => inLaterRound(resolve, true))
    assert.ok(!isRoundFree())
    await made
  })
})
