import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shareReads } from '../../../src/stores/postgres/list.ts'

/** Reads that end in order, when the test says so, with how many had begun before them. */
function heldReads(): { begun: () => number; read: () => Promise<number>; end: (error?: Error) => void } {
  const held: ((error?: Error) => void)[] = []
  let count = 0
  return {
    begun: () => count,
    read: () =>
      new Promise((resolve, reject) => {
        const before = count++
        held.push((error) => (error === undefined ? resolve(before) : reject(error)))
      }),
    end: (error) => held.shift()?.(error),
  }
}

test('begins a read at once if none of its key is under way, also after another', async () => {
  const { begun, read, end } = heldReads()
  const share = shareReads<number>()
  void share('other', read)
  for (const count of [2, 3, 4]) {
    const result = share('a', read)
    assert.equal(begun(), count)
    if (count === 2) end()
    end()
    await result
    await new Promise(setImmediate)
  }
})

test('shares one read, begun after the one under way has ended, among all who wait', async () => {
  const { begun, read, end } = heldReads()
  const share = shareReads<number>()
  const first = share('a', read)
  const waiting = [share('a', read), share('a', read), share('a', read)]
  assert.equal(begun(), 1)
  end()
  assert.equal(await first, 0)
  waiting.push(share('a', read))
  await new Promise(setImmediate)
  assert.equal(begun(), 2)
  const late = share('a', read)
  end()
  assert.deepEqual(await Promise.all(waiting), [1, 1, 1, 1])
  await new Promise(setImmediate)
  end()
  assert.equal(await late, 2)
})

test('reads anew if a read has failed', async () => {
  const { read, end } = heldReads()
  const share = shareReads<number>()
  const first = share('a', read)
  const second = share('a', read)
  end(new Error('cut'))
  await assert.rejects(first, /cut/)
  await new Promise(setImmediate)
  end()
  assert.equal(await second, 1)
})
