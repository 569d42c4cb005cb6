import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatcher } from '../../../src/stores/postgres/batcher.ts'

/** Creates a batcher whose batches finish when the test calls `release`. Records the batches and the reported sizes. */
function createBlockedBatcher() {
  const groups: (readonly string[])[] = []
  const sizes: number[] = []
  const pendingGroups: (() => void)[] = []
  const add = createBatcher<string, string>(
    async (group) => {
      groups.push(group)
      await new Promise<void>((resolve) => pendingGroups.push(resolve))
      return group.map((write) => write.toUpperCase())
    },
    { maxInFlight: 1, maxBatch: 100, timeoutMs: 60_000, onBatch: (size) => sizes.push(size) },
  )
  async function release() {
    pendingGroups.shift()?.()
    await new Promise(setImmediate)
  }
  return { add, groups, sizes, release }
}

test('the batcher limits a batch of large plants to about 1 MB', async () => {
  const { add, groups, release } = createBlockedBatcher()
  const results = ['a', 'b', 'c', 'd', 'e', 'f'].map((write) => add(write, 600_000))
  for (let i = 0; i < 4; i++) await release()
  assert.deepEqual(groups, [['a'], ['b', 'c'], ['d', 'e'], ['f']])
  await Promise.all(results)
})

test('the batcher splits queued writes into successive batches of similar size', async () => {
  const { add, groups, sizes, release } = createBlockedBatcher()
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
