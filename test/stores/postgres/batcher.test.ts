import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatcher, type BatcherOptions } from '../../../src/stores/postgres/batcher.ts'

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
