import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import fc from 'fast-check'
import { Batcher } from '../../../src/stores/postgres/batcher.ts'
import type { Batch } from '../../../src/stores/batch-channel.ts'

const fulfilled = <T>(value: T): PromiseFulfilledResult<T> => ({ status: 'fulfilled', value })

/** A batcher whose runs end when the test says so, and the groups that it was given. */
function heldBatcher(options: ConstructorParameters<typeof Batcher>[1]): {
  batcher: Batcher<string, string>
  groups: (readonly string[])[]
  release: () => void
} {
  const groups: (readonly string[])[] = []
  const held: (() => void)[] = []
  const batcher = new Batcher<string, string>(async (operations) => {
    groups.push(operations)
    await new Promise<void>((resolve) => held.push(resolve))
    return operations.map((operation) => fulfilled(operation.toUpperCase()))
  }, options)
  return { batcher, groups, release: () => held.shift()?.() }
}

test('runs the first operation at once, collects others while the maximum number of runs is under way, and keeps their order', async () => {
  const { batcher, groups, release } = heldBatcher({ maxRuns: 2 })
  const results = ['a', 'b', 'c', 'd', 'e'].map((operation) => batcher.add(operation))
  assert.deepEqual(groups, [['a'], ['b']])
  release()
  assert.equal(await results[0], 'A')
  assert.deepEqual(groups, [['a'], ['b'], ['c', 'd']])
  release()
  assert.equal(await results[1], 'B')
  assert.deepEqual(groups, [['a'], ['b'], ['c', 'd'], ['e']])
  release()
  release()
  assert.deepEqual(await Promise.all(results), ['A', 'B', 'C', 'D', 'E'])
})

test('puts no more than the maximum number of operations into a group', async () => {
  const { batcher, groups, release } = heldBatcher({ maxOperations: 2 })
  const results = ['a', 'b', 'c', 'd'].map((operation) => batcher.add(operation))
  for (const result of results) {
    release()
    await result
  }
  assert.deepEqual(groups, [['a'], ['b', 'c'], ['d']])
})

test('leaves callers of their own to a group if more wait than have been answered', async () => {
  const { batcher, groups, release } = heldBatcher({})
  const results = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((operation) => batcher.add(operation))
  release()
  assert.equal(await results[0], 'A')
  results.push(batcher.add('a again'))
  release()
  assert.equal(await results[1], 'B')
  release()
  assert.equal(await results[7], 'A AGAIN')
  assert.deepEqual(groups, [['a'], ['b', 'c', 'd', 'e'], ['f', 'g', 'a again']])
})

test('tells the diagnostics channel of each group', async (t) => {
  const { batcher, release } = heldBatcher({})
  const sizes: number[] = []
  const listener = (batch: unknown): number => sizes.push((batch as Batch).size)
  subscribe('plant-store.batch', listener)
  t.after(() => unsubscribe('plant-store.batch', listener))
  const results = ['a', 'b', 'c'].map((operation) => batcher.add(operation))
  release()
  await results[0]
  release()
  await Promise.all(results)
  assert.deepEqual(sizes, [1, 2])
})

test('rejects the whole group if the run throws or rejects, and carries out the next', async () => {
  const batcher = new Batcher<number, number>((operations) => {
    if (operations.includes(2)) throw new Error('thrown')
    if (operations.includes(7)) return Promise.reject(new Error('rejected'))
    return operations.map((n) => fulfilled(n))
  })
  const outcomes = await Promise.allSettled([1, 2, 3, 4, 5, 6, 7].map((n) => batcher.add(n)))
  const seen = outcomes.map((each): unknown => ('value' in each ? each.value : (each.reason as Error).message))
  assert.deepEqual(seen, [1, 'thrown', 'thrown', 'thrown', 'thrown', 'rejected', 'rejected'])
  assert.equal(await batcher.add(3), 3)
})

test('rejects an operation that the run says nothing about', async () => {
  const batcher = new Batcher<number, number>(() => [])
  await assert.rejects(batcher.add(1), /^Error: The outcome of this operation is missing\.$/)
})

/** Operations that come one after the other or at once, and a limit for each thing that has one. */
const loads = fc.record({
  options: fc.record({ maxRuns: fc.integer({ min: 1, max: 3 }), maxOperations: fc.integer({ min: 1, max: 5 }) }),
  arrivals: fc.array(fc.record({ id: fc.nat(3), waits: fc.boolean() }), { maxLength: 30 }),
})

test('gives each operation the result that it has when all run one after the other', async () => {
  /** Takes an id that is there, or adds one that is not; one id is refused. */
  const toggle = (ids: Set<number>, id: number): PromiseSettledResult<string> => {
    if (id === 0) return { status: 'rejected', reason: 'refused' }
    return fulfilled(ids.delete(id) ? `took ${id}` : `added ${ids.add(id).size}`)
  }
  const property = fc.asyncProperty(loads, fc.scheduler(), async ({ options, arrivals }, scheduler) => {
    const ids = new Set<number>()
    const sizes: number[] = []
    let underWay = 0
    let mostRuns = 0
    const batcher = new Batcher<number, string>(async (group) => {
      sizes.push(group.length)
      mostRuns = Math.max(mostRuns, ++underWay)
      const outcomes = group.map((id) => toggle(ids, id))
      await scheduler.schedule(Promise.resolve())
      underWay--
      return outcomes
    }, options)
    const results: Promise<PromiseSettledResult<string>[]>[] = []
    for (const { id, waits } of arrivals) {
      results.push(Promise.allSettled([batcher.add(id)]))
      if (waits) await scheduler.waitNext(1)
    }
    const outcomes = await scheduler.waitFor(Promise.all(results))
    assert.equal(underWay, 0)
    assert.ok(mostRuns <= options.maxRuns)
    assert.ok(sizes.every((size) => size >= 1 && size <= options.maxOperations))
    const sequential = new Set<number>()
    const expected = arrivals.map(({ id }) => toggle(sequential, id))
    assert.deepEqual(outcomes.flat(), expected)
  })
  await fc.assert(property)
})
