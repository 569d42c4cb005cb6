import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { inLaterRound } from '../src/later-round.ts'

/** Counts the rounds of the event loop while the test runs. */
function countTurns(t: TestContext): () => number {
  let turns = 0
  let next = setImmediate(function count() {
    turns++
    next = setImmediate(count)
  })
  t.after(() => clearImmediate(next))
  return () => turns
}

function spin(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

/** Makes calls that take so long, and says in which turn each was made. */
async function turnsOf(t: TestContext, calls: number, ms: number): Promise<number[]> {
  const turn = countTurns(t)
  const turns: number[] = []
  await new Promise<void>((resolve) => {
    for (let i = 0; i < calls; i++) {
      inLaterRound(() => {
        spin(ms)
        if (turns.push(turn()) === calls) resolve()
      })
    }
    assert.deepEqual(turns, [])
  })
  return turns
}

suite('calls in later turns', () => {
  test('are made in the order in which they were asked for', async () => {
    const made: number[] = []
    await new Promise<void>((resolve) => {
      for (const n of [1, 2, 3]) inLaterRound(() => made.push(n))
      inLaterRound(resolve)
      assert.deepEqual(made, [])
    })
    assert.deepEqual(made, [1, 2, 3])
  })

  for (const round of ['first', 'second']) {
    test(`have a turn each if each takes longer than their share, for the ${round} time`, async (t) => {
      const turns = await turnsOf(t, 5, 3)
      assert.equal(new Set(turns).size, 5)
    })
  }

  test('share turns if they take little', async (t) => {
    const turns = await turnsOf(t, 200, 0)
    assert.ok(new Set(turns).size < 50, `200 calls in ${new Set(turns).size} turns`)
  })
})
