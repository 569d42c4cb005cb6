import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError, type PageRequest } from '../../src/index.ts'
import { ListSlots } from '../../src/plants/list-slots.ts'
import { listPlants, type ListQuery, type PlantSource } from '../../src/plants/listing.ts'
import { plantSource } from '../support/database/plant-source.ts'
import { memoryUsed } from '../support/heap.ts'

/** An owner with 2,500 plants, who may read one long list at once. Its client has gone once it emits `gone`. */
function sourceOf(
  owner = 'ada',
  slots = new ListSlots(1, 60_000),
): PlantSource & { readonly requests: PageRequest[]; readonly client: EventEmitter } {
  const store = memoryStore()
  for (let id = 1n; id <= 2500n; id++) void store.create(owner, { id, name: 'Fern' })
  const requests: PageRequest[] = []
  const client = new EventEmitter()
  const source = plantSource((request) => {
    requests.push(request)
    return store.list(owner, request)
  })
  return { ...source, owner, slots, requests, client, whenGone: (listener) => client.on('gone', listener) }
}

/** The same, of which one list is being read. */
async function busySource(slots?: ListSlots): Promise<{ source: ReturnType<typeof sourceOf>; first: List }> {
  const source = sourceOf('ada', slots)
  const first = await pieces(source)
  await first.next()
  return { source, first }
}

type List = AsyncIterator<string>

async function pieces(source: PlantSource, query: Partial<ListQuery> = {}): Promise<List> {
  const { body } = await listPlants(source, { limit: Infinity, after: undefined, includesId: false, ...query })
  return (body as AsyncIterable<string>)[Symbol.asyncIterator]()
}

async function rest(list: List): Promise<string> {
  let text = ''
  for (let piece = await list.next(); piece.done !== true; piece = await list.next()) text += piece.value
  return text
}

/** Whether a promise is still pending when everything that can go on without it has. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  const timeout = new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve, pending))))
  return (await Promise.race([promise, timeout])) === pending
}

suite('of more long lists than an owner may read at once', () => {
  for (const [name, query] of [
    ['without a limit', {}],
    ['with one', { limit: 2400 }],
  ] as const) {
    test(`one ${name} waits until another is read to its end, and is whole`, async () => {
      const { source, first } = await busySource()
      const second = pieces(source, query).then(rest)
      assert.equal(await isPending(second), true)
      await rest(first)
      assert.equal((JSON.parse(await second) as unknown[]).length, query.limit ?? 2500)
    })
  }

  test('one goes on when the client of another has gone', async () => {
    const { source, first } = await busySource()
    const second = (await pieces(source)).next()
    assert.equal(await isPending(second), true)
    await first.return?.()
    assert.equal((await second).done, false)
  })

  test('those that wait go on in the order in which they came', async () => {
    const { source, first } = await busySource()
    const order: number[] = []
    const waiting = [1, 2, 3].map(async (n) => {
      await rest(await pieces(source))
      order.push(n)
    })
    await rest(first)
    await Promise.all(waiting)
    assert.deepEqual(order, [1, 2, 3])
  })

  test('one that waited reads its first page again, as it kept none', async () => {
    const { source, first } = await busySource()
    const second = await pieces(source, { after: 5n })
    const next = second.next()
    source.requests.length = 0
    await first.return?.()
    await next
    const cursors = source.requests.map(({ after }) => after)
    assert.deepEqual(cursors, [5n])
  })

  test('one that waits ends when its client goes, and the next goes on in its place', async () => {
    const { source, first } = await busySource()
    const client = new EventEmitter()
    const second = rest(await pieces({ ...source, whenGone: (listener) => client.on('gone', listener) }))
    const third = rest(await pieces(source))
    source.requests.length = 0
    client.emit('gone')
    assert.equal(await second, '[]')
    assert.equal(source.requests.length, 0)
    await rest(first)
    assert.equal((JSON.parse(await third) as unknown[]).length, 2500)
  })

  test('one with a limit, which takes a turn to find its end and one to be read, ends when its client goes', async () => {
    const source = sourceOf()
    const second = await pieces(source, { limit: 2400 })
    await (await pieces({ ...source, whenGone: () => undefined })).next()
    const text = rest(second)
    source.requests.length = 0
    source.client.emit('gone')
    assert.equal(await text, '[]')
    assert.equal(source.requests.length, 0)
  })

  test('one whose client goes after its turn has come keeps its place until it ends', async () => {
    const { source, first } = await busySource()
    const second = await pieces(source)
    const piece = second.next()
    await first.return?.()
    await piece
    source.client.emit('gone')
    const third = (await pieces(source)).next()
    assert.equal(await isPending(third), true)
    await second.return?.()
    assert.equal((await third).done, false)
  })

  test('one that waits too long fails, and the next goes on in its place', async () => {
    const { source, first } = await busySource(new ListSlots(1, 1))
    const reason = 'The list has waited 1 ms for others to end: maxListsPerOwner is 1.'
    await assert.rejects(rest(await pieces(source)), new StoreUnavailableError(reason))
    await first.return?.()
    assert.equal((JSON.parse(await rest(await pieces(source))) as unknown[]).length, 2500)
  })

  test('one of another owner does not wait', async () => {
    const slots = new ListSlots(1, 60_000)
    await (await pieces(sourceOf('ada', slots))).next()
    assert.equal((await (await pieces(sourceOf('grace', slots))).next()).done, false)
  })

  test('one that fits a page does not wait', async () => {
    const { source } = await busySource()
    const { body } = await listPlants(source, { limit: 10, after: undefined, includesId: false })
    assert.equal((JSON.parse(body as string) as unknown[]).length, 10)
  })
})

/** A list whose client stays. */
function listOf(owner: string): Parameters<ListSlots['take']>[0] {
  return { owner, whenGone: () => undefined }
}

test('as many slots are given after others have ended as before', async () => {
  const slots = new ListSlots(2, 60_000)
  assert.equal(slots.take(listOf('ada')), undefined)
  for (let round = 1; round <= 3; round++) {
    assert.equal(slots.take(listOf('ada')), undefined)
    const third = slots.take(listOf('ada'))
    assert.ok(third instanceof Promise)
    slots.release('ada')
    await third
    slots.release('ada')
  }
})

test('nothing is kept of an owner whose slots have ended', async () => {
  const slots = new ListSlots(1, 60_000)
  const before = await memoryUsed()
  for (let i = 0; i < 20_000; i++) {
    assert.equal(slots.take(listOf(`owner ${i}`)), undefined)
    slots.release(`owner ${i}`)
  }
  const left = (await memoryUsed()) - before
  assert.ok(left < 20_000 * 50, `20,000 owners leave ${left} bytes`)
  assert.equal(slots.take(listOf('owner 1')), undefined)
})
