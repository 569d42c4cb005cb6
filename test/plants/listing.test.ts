import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { MAX_PAGE_BYTES, memoryStore, type Page, type PageRequest, type Store } from '../../src/index.ts'
import type { MaybePromise } from '../../src/maybe-promise.ts'
import { MAX_INT64, MIN_INT64 } from '../../src/plants/int64.ts'
import { listPlants } from '../../src/plants/listing.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { plantSource } from '../support/database/plant-source.ts'
import { follow as followLinks } from '../support/wire/follow.ts'
import { get, portOf, send, servePlants } from '../support/wire/service.ts'

/** A store with plants of these ids, each named by its id. */
function storeOf(ids: Iterable<number>): Store {
  const store = memoryStore()
  for (const id of ids) void store.create('ada', { id: BigInt(id), name: String(id) })
  return store
}

function* upTo(count: number): Generator<number> {
  for (let id = 1; id <= count; id++) yield id
}

function idsOf(body: string): readonly number[] {
  return (JSON.parse(body) as { name: string }[]).map(({ name }) => Number(name))
}

/** The ids of the lists from a path on, as the links lead from one to the next. */
async function follow(...path: Parameters<typeof followLinks>): Promise<readonly (readonly number[])[]> {
  return (await followLinks(...path)).map(idsOf)
}

suite('a list without a limit', () => {
  for (const count of [0, 1, 999, 1000, 1001, 2000, 2500]) {
    test(`holds all of ${count} plants`, async (t) => {
      const server = await servePlants(t, { store: storeOf(upTo(count)) })
      const { status, headers, body } = await send(server, get('ada'))
      assert.equal(status, 200)
      assert.equal(headers['content-type'], 'application/json')
      assert.equal(headers['content-length'], count < 1000 ? String(body.length) : undefined)
      assert.equal(headers['link'], undefined)
      assert.deepEqual(idsOf(body), [...upTo(count)])
    })
  }
})

test('a list with the limit 0 is empty, and the store is not called', async (t) => {
  const list = (): never => assert.fail('called')
  const server = await servePlants(t, { store: delegatingStore(storeOf(upTo(2)), { list }) })
  const { status, headers, body } = await send(server, get('ada', '/plants?limit=0'))
  assert.deepEqual([status, headers, body], [200, { 'content-type': 'application/json', 'content-length': '2' }, '[]'])
})

suite('following the links', () => {
  for (const [limit, sizes] of [
    [1000, [1000, 1000, 500]],
    [999, [999, 999, 502]],
    [1001, [1001, 1001, 498]],
    [1500, [1500, 1000]],
    [2499, [2499, 1]],
    [2500, [2500]],
    [2501, [2500]],
  ] as const) {
    test(`gives each of 2500 plants once, ${limit} at a time`, async (t) => {
      const server = await servePlants(t, { store: storeOf(upTo(2500)) })
      const lists = await follow(server, `/plants?limit=${limit}`)
      const lengths = lists.map((list) => list.length)
      assert.deepEqual(lengths, sizes)
      assert.deepEqual(lists.flat(), [...upTo(2500)])
    })
  }

  test('ends with a page that is full to the last plant', async (t) => {
    const server = await servePlants(t, { store: storeOf(upTo(1000)) })
    assert.deepEqual(await follow(server, '/plants?limit=1000'), [[...upTo(1000)]])
    const { headers, body } = await send(server, get('ada', '/plants?limit=1000'))
    assert.deepEqual(headers, { 'content-type': 'application/json', 'content-length': String(body.length) })
  })

  test('leads on from a page that ends at maxBytes by the length of its text', async (t) => {
    const memory = storeOf([])
    const name = 'x'.repeat(MAX_PAGE_BYTES - '{"name":""}'.length)
    for (const id of [1n, 2n]) void memory.create('ada', { id, name })
    const list: Store['list'] = (owner, page) => memory.list(owner, { ...page, limit: 1 })
    const server = await servePlants(t, { store: delegatingStore(memory, { list }) })
    assert.equal(Buffer.byteLength(JSON.stringify({ name })), MAX_PAGE_BYTES)
    assert.equal((await send(server, get('ada'))).body, JSON.stringify([{ name }, { name }]))
  })

  test('skips and repeats nothing while plants come and go', async (t) => {
    const store = storeOf([10, 20, 30, 40, 50])
    const server = await servePlants(t, { store })
    const changes = [
      () => [
        store.delete('ada', 20n),
        store.create('ada', { id: 5n, name: '5' }),
        store.create('ada', { id: 25n, name: '25' }),
      ],
      () => [store.delete('ada', 30n), store.delete('ada', 40n)],
    ]
    const lists = await follow(server, '/plants?limit=2', () => changes.shift()?.())
    assert.deepEqual(lists, [[10, 20], [25, 30], [50]])
  })

  test('goes by maxLimit if the client set a higher limit, or none', async (t) => {
    const server = await servePlants(t, { store: storeOf(upTo(5)), maxLimit: 2 })
    assert.deepEqual(await follow(server, '/plants'), [[1, 2], [3, 4], [5]])
    assert.deepEqual(await follow(server, '/plants?limit=4'), [[1, 2], [3, 4], [5]])
    assert.deepEqual(await follow(server, '/plants?limit=1'), [[1], [2], [3], [4], [5]])
  })
})

suite('a list with ids', () => {
  // Whole, in pieces, in pages, and surveyed: by the sides of the limits of a page.
  for (const [count, query] of [
    [3, ''],
    [999, ''],
    [2500, ''],
    [1000, '&limit=1000'],
    [2500, '&limit=999'],
    [2500, '&limit=1500'],
  ] as const) {
    test(`has those of ${count} plants, beyond 2^53 too, with ${query || 'no limit'}`, async (t) => {
      const store = memoryStore()
      const texts: string[] = []
      for (let n = 0n; n < count; n++) {
        const id = MIN_INT64 + n * 2n ** 52n
        void store.create('ada', { id, name: `plant ${n}` })
        texts.push(`{"id":${id},"name":"plant ${n}"}`)
      }
      const server = await servePlants(t, { store })
      const lists = await followLinks(server, `/plants?include=id${query}`)
      assert.equal(lists.map((list) => list.slice(1, -1)).join(), texts.join())
    })
  }

  test('ends after the page whose texts are short but for the ids', async (t) => {
    const reads: unknown[] = []
    const memory = memoryStore()
    const name = 'x'.repeat(200)
    for (let id = 0n; id < 600n; id++) void memory.create('ada', { id: MAX_INT64 - id, name })
    const list: Store['list'] = (owner, page) => {
      reads.push(page.after)
      return memory.list(owner, page)
    }
    const server = await servePlants(t, { store: delegatingStore(memory, { list }) })
    const { body } = await send(server, get('ada', '/plants?include=id'))
    assert.equal((JSON.parse(body) as unknown[]).length, 600)
    assert.deepEqual(reads, [undefined])
  })
})

/** A store to which something happens before its page after the first `intact` ones. */
function changingAfter(store: Store, intact: number, change: () => void): Store {
  let pages = 0
  return delegatingStore(store, {
    list(owner, page) {
      if (pages++ === intact) change()
      return store.list(owner, page)
    },
  })
}

suite('a long list with a limit', () => {
  const even = [...upTo(2500)].map((id) => 2 * id)

  const remove = (store: Store, ids: readonly number[]): void => {
    for (const id of ids) void store.delete('ada', BigInt(id))
  }
  // The survey reads three pages; then plants come or go in the midst of what it saw.
  for (const [what, change, first] of [
    [
      'leaves out what was created while it was read, and the next list does not',
      (store: Store) => {
        for (let id = 1001; id < 1401; id += 2) void store.create('ada', { id: BigInt(id), name: String(id) })
      },
      even.slice(0, 2200),
    ],
    [
      'leaves out what was deleted while it was read',
      (store: Store) => remove(store, even.slice(0, 1500)),
      even.slice(1500, 2200),
    ],
    ['is empty if all of it was deleted while it was read', (store: Store) => remove(store, even), []],
  ] as const) {
    test(what, async (t) => {
      const store = storeOf(even)
      const server = await servePlants(t, { store: changingAfter(store, 3, () => change(store)) })
      const next = first.length === 0 ? [] : even.slice(2200)
      assert.deepEqual(await follow(server, '/plants?limit=2200'), [first, next])
    })
  }

  for (const [limit, pages] of [
    [1500, [undefined, 2000n]],
    [2000, [undefined, 2000n, 4000n]],
  ] as const) {
    test(`is read no further than its limit of ${limit}, to find its end and to send it`, async () => {
      const store = storeOf(even)
      const reads: unknown[] = []
      const readPage = (request: PageRequest): MaybePromise<Page> => {
        reads.push(request.after)
        return store.list('ada', request)
      }
      const { body, cursor } = await listPlants(plantSource(readPage), { limit, after: undefined, includesId: false })
      assert.equal(cursor, BigInt(2 * limit))
      assert.deepEqual(reads, pages)
      let text = ''
      for await (const piece of body as AsyncIterable<string>) text += piece
      assert.deepEqual(idsOf(text), even.slice(0, limit))
      assert.deepEqual(reads, [...pages, undefined, 2000n])
    })
  }
})

test('a list with a limit that is too long to survey is cut short, and Link leads on', async (t) => {
  const count = 200_000
  const idOf = (n: number): bigint => MIN_INT64 + BigInt(n) * 2n ** 46n
  const store: Store = {
    ...memoryStore(),
    list(_, { limit, after }) {
      const start = after === undefined ? 0 : Number((after - MIN_INT64) / 2n ** 46n) + 1
      const length = Math.min(limit, count - start)
      return Array.from({ length }, (_, i) => ({ id: idOf(start + i), name: String(start + i) }))
    },
  }
  const server = await servePlants(t, { store })
  const lists = await follow(server, `/plants?limit=${count}`)
  assert.equal(lists.length, 2)
  assert.ok(lists[0]!.length >= 131_072)
  const all = Array.from({ length: count }, (_, n) => n)
  assert.deepEqual(lists.flat(), all)
})

for (const limit of [Infinity, 4500]) {
  test(`reads each page of a list with the limit ${limit} in another round of the event loop`, async () => {
    let turn = 0
    const count = (): void => {
      turn++
      ticking = setImmediate(count)
    }
    let ticking = setImmediate(count)
    const turns: number[] = []
    const store = storeOf(upTo(5000))
    const readPage = (request: PageRequest): MaybePromise<Page> => {
      turns.push(turn)
      return store.list('ada', request)
    }
    const { body } = await listPlants(plantSource(readPage), { limit, after: undefined, includesId: false })
    for await (const piece of body as AsyncIterable<string>) assert.ok(piece !== '')
    clearImmediate(ticking)
    assert.ok(turns.length > 5)
    assert.equal(new Set(turns).size, turns.length)
  })
}

suite('a list that is streamed', () => {
  // Node takes all of these on a connection of HTTP/1.
  const lines = { '0.9': 'GET /plants', '1.0': 'GET /plants HTTP/1.0', '2.0': 'GET /plants HTTP/2.0' }
  for (const [version, line] of Object.entries(lines)) {
    test(`does not look whole to a client of HTTP/${version} if the store fails in its midst`, async (t) => {
      const store = changingAfter(storeOf(upTo(50_000)), 30, () => {
        throw new Error('disk on fire')
      })
      const port = portOf(await servePlants(t, { store }))
      // A read that takes less than it has room for may hide a reset from Node, and look like the end.
      const socket = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(1), callback: () => true } })
      socket.write(`${line}\r\nAuthorization: Bearer ada\r\n\r\n`)
      await assert.rejects(once(socket, 'close'), { code: 'ECONNRESET' })
    })
  }
})
