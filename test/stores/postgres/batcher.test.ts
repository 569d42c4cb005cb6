import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createBatcher, type BatcherOptions } from '../../../src/stores/postgres/batcher.ts'

/** What the server says to a value that it does not take. */
const refusal = Object.assign(new Error('refused'), { code: '22021' })

const ONE_BY_ONE: BatcherOptions = { maxInFlight: 1, maxBatch: 100, timeoutMs: 60_000 }

/** A batcher whose groups end when the test says so, and the groups that it sent. */
function heldBatcher(options: Partial<BatcherOptions> = {}): {
  add: (write: string, length?: number) => Promise<string>
  groups: (readonly string[])[]
  release: () => Promise<void>
} {
  const groups: (readonly string[])[] = []
  const held: (() => void)[] = []
  const add = createBatcher<string, string>(
    async (group) => {
      groups.push(group)
      await new Promise<void>((resolve) => held.push(resolve))
      return group.map((write) => write.toUpperCase())
    },
    { ...ONE_BY_ONE, ...options },
  )
  async function release(): Promise<void> {
    held.shift()?.()
    await new Promise(setImmediate)
  }
  return { add, groups, release }
}

test('sends the first write at once, collects others while the maximum number of groups is in flight, and keeps their order', async () => {
  const { add, groups, release } = heldBatcher({ maxInFlight: 2 })
  const results = ['a', 'b', 'c', 'd', 'e'].map((write) => add(write))
  assert.deepEqual(groups, [['a'], ['b']])
  await release()
  assert.equal(await results[0], 'A')
  assert.deepEqual(groups, [['a'], ['b'], ['c', 'd']])
  await release()
  assert.equal(await results[1], 'B')
  assert.deepEqual(groups, [['a'], ['b'], ['c', 'd'], ['e']])
  await release()
  await release()
  assert.deepEqual(await Promise.all(results), ['A', 'B', 'C', 'D', 'E'])
})

test('sends a megabyte of large plants at a time', async () => {
  const { add, groups, release } = heldBatcher()
  const results = ['a', 'b', 'c', 'd', 'e', 'f'].map((write) => add(write, 600_000))
  for (let i = 0; i < 4; i++) await release()
  assert.deepEqual(groups, [['a'], ['b', 'c'], ['d', 'e'], ['f']])
  await Promise.all(results)
})

test('leaves callers of their own to a group if more wait than have been answered, and tells of each group', async () => {
  const sizes: number[] = []
  const { add, groups, release } = heldBatcher({ onBatch: (size) => sizes.push(size) })
  const results = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((write) => add(write))
  await release()
  assert.equal(await results[0], 'A')
  results.push(add('a again'))
  await release()
  assert.equal(await results[1], 'B')
  await release()
  assert.equal(await results[7], 'A AGAIN')
  assert.deepEqual(groups, [['a'], ['b', 'c', 'd', 'e'], ['f', 'g', 'a again']])
  assert.deepEqual(sizes, [1, 4, 3])
})

test('sends no write that has waited for longer than it may, and those that have not', async (t) => {
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  const { add, groups, release } = heldBatcher({ timeoutMs: 50 })
  const outcomes = ['a', 'b'].map((write) => add(write).catch(String))
  now += 1
  outcomes.push(add('c').catch(String))
  now += 50
  await release()
  await release()
  assert.deepEqual(await Promise.all(outcomes), ['A', 'StoreUnavailableError: No statement was free in time.', 'C'])
  assert.deepEqual(groups, [['a'], ['c']])
})

/** Takes a rejection for an outcome as others are. */
const reasonOf = (reason: unknown): unknown => reason

test('rejects the whole group if it fails for another reason, and sends the next', async () => {
  const failure = new Error('down')
  const add = createBatcher<number, number>((group) => {
    return group.includes(2) ? Promise.reject(failure) : Promise.resolve([...group])
  }, ONE_BY_ONE)
  const outcomes = await Promise.all([1, 2, 3].map((n) => add(n).catch(reasonOf)))
  assert.deepEqual(outcomes, [1, failure, failure])
  assert.equal(await add(3), 3)
})

/** Writes that come one after the other or at once, and a limit for each thing that has one. */
const loads = fc.record({
  options: fc.record({ maxInFlight: fc.integer({ min: 1, max: 3 }), maxBatch: fc.integer({ min: 1, max: 5 }) }),
  arrivals: fc.array(fc.record({ id: fc.nat(3), waits: fc.boolean() }), { maxLength: 30 }),
})

test('gives each write the result that it has when all are sent one after the other', async () => {
  /** Takes an id that is there, or adds one that is not. */
  const toggle = (ids: Set<number>, id: number): string => {
    return ids.delete(id) ? `took ${id}` : `added ${ids.add(id).size}`
  }
  const property = fc.asyncProperty(loads, fc.scheduler(), async ({ options, arrivals }, scheduler) => {
    const ids = new Set<number>()
    let underWay = 0
    const add = createBatcher<number, string>(
      async (group) => {
        assert.ok(group.length >= 1 && group.length <= options.maxBatch)
        assert.ok(++underWay <= options.maxInFlight)
        const isRefused = group.includes(0)
        const results = isRefused ? [] : group.map((id) => toggle(ids, id))
        await scheduler.schedule(Promise.resolve())
        underWay--
        if (isRefused) throw refusal
        return results
      },
      { ...ONE_BY_ONE, ...options },
    )
    const results: Promise<unknown>[] = []
    for (const { id, waits } of arrivals) {
      results.push(add(id).catch(reasonOf))
      if (waits) await scheduler.waitNext(1)
    }
    const outcomes = await scheduler.waitFor(Promise.all(results))
    assert.equal(underWay, 0)
    // The halves of a group that is refused let later groups pass.
    if (options.maxInFlight > 1 && arrivals.some(({ id }) => id === 0)) return
    const sequential = new Set<number>()
    const expected = arrivals.map(({ id }) => (id === 0 ? refusal : toggle(sequential, id)))
    assert.deepEqual(outcomes, expected)
  })
  await fc.assert(property)
})
