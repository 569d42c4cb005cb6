import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from '../../../src/plants/store.ts'
import { createPageReader } from '../../../src/stores/postgres/list.ts'

/** The lowest id that there may be. */
const FIRST = '-9223372036854775808'

type Row = [id: string, name: string | null, tag: string | null]

const FERN: Row = ['1', 'fern', null]
const MOSS: Row = ['2', 'moss', 'green']
const HELD_BACK: Row = ['2', null, null]

/** A reader to which the database gives these rows, statement by statement, and the statements that it has sent. */
function readerOf(...answers: Row[][]): { read: ReturnType<typeof createPageReader>; sent: unknown[][] } {
  const sent: unknown[][] = []
  const read = createPageReader(({ name }, values) => {
    sent.push([name, ...values])
    return Promise.resolve({ rows: answers.shift()!, rowCount: null })
  })
  return { read, sent }
}

function plantsOf(page: Page): unknown[] {
  return page.map(({ id, name, tag }) => [id, name, tag])
}

test('reads the first page, and the one after an id', async () => {
  const { read, sent } = readerOf([FERN, MOSS], [MOSS])
  assert.deepEqual(plantsOf(await read('ann', { limit: 10, maxBytes: 100 })), [
    [1n, 'fern', undefined],
    [2n, 'moss', 'green'],
  ])
  assert.deepEqual(plantsOf(await read('ann', { limit: 10, maxBytes: 100, after: 1n })), [[2n, 'moss', 'green']])
  assert.deepEqual(sent, [
    ['plant-store list', 'ann', FIRST, 10],
    ['plant-store list', 'ann', '2', 10],
  ])
})

test('asks for nothing after the highest id that there may be', async () => {
  const { read, sent } = readerOf()
  assert.deepEqual(await read('ann', { limit: 10, maxBytes: 100, after: 2n ** 63n - 1n }), [])
  assert.deepEqual(sent, [])
})

test('has the server cut a page if it holds a plant back', async () => {
  const { read, sent } = readerOf([FERN, HELD_BACK], [FERN, MOSS], [FERN, HELD_BACK], [FERN, MOSS])
  const [first, next] = [
    await read('ann', { limit: 10, maxBytes: 100 }),
    await read('ann', { limit: 10, maxBytes: 100, after: 0n }),
  ]
  assert.deepEqual([first.length, next.length], [2, 2])
  assert.deepEqual(sent, [
    ['plant-store list', 'ann', FIRST, 10],
    ['plant-store list large', 'ann', FIRST, 10, 100],
    ['plant-store list', 'ann', '1', 10],
    ['plant-store list large', 'ann', '1', 10, 100],
  ])
})

test('ends a page with the plant with which it comes to maxBytes', async () => {
  const { read } = readerOf([FERN, MOSS, FERN])
  assert.deepEqual(plantsOf(await read('ann', { limit: 10, maxBytes: 5 })), [
    [1n, 'fern', undefined],
    [2n, 'moss', 'green'],
  ])
})

suite('has the server count at once for the page after', () => {
  // The JSON text of a plant is 11 characters longer than its name.
  const named = (length: number): Row => ['1', 'x'.repeat(length), null]
  const rows: [string, Row[], maxBytes: number, boolean][] = [
    ['a page of small plants', [FERN, MOSS], 100, false],
    ['a page that came to maxBytes', [FERN, MOSS], 5, true],
    ['a page with a large plant', [FERN, named(1013), MOSS], 10_000, true],
    ['a page of many small plants', [named(1012), named(1012)], 10_000, false],
  ]
  for (const [name, page, maxBytes, isCounted] of rows) {
    test(`${name}: ${isCounted}`, async () => {
      const { read, sent } = readerOf(page, [MOSS], [MOSS])
      await read('ann', { limit: 10, maxBytes })
      await read('ann', { limit: 10, maxBytes, after: 1n })
      const names = sent.map(([statement]) => statement)
      assert.deepEqual(names, ['plant-store list', isCounted ? 'plant-store list large' : 'plant-store list'])
    })
  }

  test('and no longer after a page of small plants', async () => {
    const { read, sent } = readerOf([named(2000)], [FERN], [FERN])
    for (let page = 0; page < 3; page++) await read('ann', { limit: 10, maxBytes: 10_000 })
    const names = sent.map(([statement]) => statement)
    assert.deepEqual(names, ['plant-store list', 'plant-store list large', 'plant-store list'])
  })
})
