import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { MAX_PAGE_BYTES, memoryStore, type NewPlant, type Store } from '../../src/index.ts'
import { MIN_INT64 } from '../../src/plants/int64.ts'
import { listPlants } from '../../src/plants/list-plants.ts'
import { listEncodedPlants, wrapEncodedList } from '../../src/plants/encoded-list.ts'
import { EncodedPlant, encodeFields } from '../../src/plants/plant.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { createPlantList } from '../support/database/plant-list.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'
import { waitUntil } from '../support/wait-until.ts'
import { get, openResponse, getPort, sendRequest, servePlants } from '../support/wire/service.ts'

/** Spreads ids over the whole int64 range. */
function createId(n: number): bigint {
  return MIN_INT64 + BigInt(n) * 2n ** 46n
}

function createStoreWithNames(names: readonly string[]): Store {
  const store = memoryStore()
  for (const [n, name] of names.entries()) void store.create('ada', { id: createId(n), name })
  return store
}

/** A store with identical plants, which share one string in memory. */
function createStoreWithCopies(count: number, rest: string): Store {
  const store = memoryStore()
  for (let id = 1; id <= count; id++)
    void store.create('ada', new EncodedPlant(BigInt(id), rest) as unknown as NewPlant)
  return store
}

function repeatName(count: number, name = 'Fern'): readonly string[] {
  return Array<string>(count).fill(name)
}

/** Follows `Link` headers from a path to the last page. */
async function followLinks(server: Server, path: string): Promise<readonly string[]> {
  const bodies: string[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const { headers, body } = await sendRequest(server, get('ada', next))
    bodies.push(body)
    const link = /^<(.+)>; rel="next"$/.exec(headers['link'] ?? '')?.[1]
    next = link === undefined ? undefined : new URL(link, 'http://host/plants').href.slice('http://host'.length)
  }
  return bodies
}

function ignoreMaxBytes(store: Store): Store {
  const list = wrapEncodedList((owner, page) => listEncodedPlants(store, owner, { ...page, maxBytes: Infinity }))
  return { ...store, list }
}

const STORES = [
  ['that respects maxBytes', (store: Store) => store],
  ['that ignores maxBytes', ignoreMaxBytes],
] as const

suite('following the Link headers returns each plant exactly once', () => {
  const half = 'x'.repeat(MAX_PAGE_BYTES / 2)
  const rows: Readonly<Record<string, readonly string[]>> = {
    ...Object.fromEntries([0, 1, 999, 1000, 1001, 2000, 2500].map((count) => [`${count} plants`, repeatName(count)])),
    '40 plants of 60 kB': repeatName(40, 'x'.repeat(60_000)),
    '5 plants that each fill a page': repeatName(5, 'x'.repeat(MAX_PAGE_BYTES)),
    '2 plants that exactly fill a page': [half, half],
    '2 plants that are a byte smaller than a page': [half, half.slice(1)],
    '1,100 plants of 300 bytes': repeatName(1100, 'x'.repeat(300)),
    'a large plant among small plants': [...repeatName(50), 'x'.repeat(500_000), ...repeatName(50)],
  }
  for (const [what, names] of Object.entries(rows)) {
    for (const [which, keeping] of STORES) {
      test(`${what}, with a store ${which}`, async (t) => {
        const server = await servePlants(t, { store: keeping(createStoreWithNames(names)) })
        const { length } = names
        const limits = [Math.ceil(length / 7), Math.ceil(length / 3), 999, 1000, 1001, length - 1, length, length + 1]
        for (const limit of new Set([...limits.filter((limit) => limit > 0), Infinity])) {
          for (const include of ['', '&include=id']) {
            const query = limit === Infinity ? include.slice(1) : `limit=${limit}${include}`
            const lists = await followLinks(server, `/plants?${query}`)
            const texts = names.map((name, n) => `{${include && `"id":${createId(n)},`}"name":"${name}"}`)
            const expected = ['[]']
            for (let n = 0; n < length; n += limit) expected[n / limit] = `[${texts.slice(n, n + limit).join()}]`
            assert.ok(lists.join() === expected.join(), `${query}: ${lists.map((list) => list.length).join()}`)
          }
        }
      })
    }
  }

  test('following the Link headers returns each plant exactly once if maxLimit is lower than the requested limit', async (t) => {
    const server = await servePlants(t, { store: createStoreWithNames(['1', '2', '3']), maxLimit: 2 })
    const lists = ['[{"name":"1"},{"name":"2"}]', '[{"name":"3"}]']
    for (const path of ['/plants', '/plants?limit=4']) assert.deepEqual(await followLinks(server, path), lists)
  })
})

suite('hasMore determines whether the service reads another page', () => {
  /** Serves pages of one plant each, and records the cursor of each page. */
  async function serveOneByOne(t: TestContext, names: readonly string[], hasMore: (isLast: boolean) => boolean) {
    const reads: unknown[] = []
    const memory = createStoreWithNames(names)
    const list: Store['list'] = async (owner, page) => {
      reads.push(page.after)
      const { plants, hasMore: isFollowed } = await memory.list(owner, { ...page, limit: 1 })
      return { plants, hasMore: hasMore(!isFollowed) }
    }
    return { server: await servePlants(t, { store: overrideStore(memory, { list }) }), reads }
  }

  test('the service reads another page after a short page if hasMore is true', async (t) => {
    const { server, reads } = await serveOneByOne(t, ['a', 'b'], (isLast) => !isLast)
    assert.equal((await sendRequest(server, get('ada'))).body, '[{"name":"a"},{"name":"b"}]')
    assert.deepEqual(reads, [undefined, createId(0)])
  })

  test('the service stops reading after a page that exceeds maxBytes if hasMore is false', async (t) => {
    const name = 'x'.repeat(2 * MAX_PAGE_BYTES)
    const { server, reads } = await serveOneByOne(t, [name, name], () => false)
    assert.equal((await sendRequest(server, get('ada'))).body, JSON.stringify([{ name }]))
    assert.deepEqual(reads, [undefined])
  })

  test('the service stops reading after an empty page even if hasMore is always true', async (t) => {
    const { server, reads } = await serveOneByOne(t, ['a', 'b'], () => true)
    assert.equal((await sendRequest(server, get('ada'))).body, '[{"name":"a"},{"name":"b"}]')
    assert.deepEqual(reads, [undefined, createId(0), createId(1)])
  })

  test('the service stops reading after an empty first page even if hasMore is true', async (t) => {
    const { server } = await serveOneByOne(t, [], () => true)
    const { headers, body } = await sendRequest(server, get('ada', '/plants?limit=1'))
    assert.deepEqual([body, headers['link']], ['[]', undefined])
  })
})

suite('hasMore determines whether a list with a limit has a Link header', () => {
  for (const [hasMore, limit, link] of [
    [true, 2, '<plants?limit=2&after=2>; rel="next"'],
    [false, 2, undefined],
    [true, 2000, '<plants?limit=2000&after=2000>; rel="next"'],
    [false, 2000, undefined],
  ] as const) {
    test(`with hasMore ${hasMore} and a limit of ${limit}`, async (t) => {
      const store = memoryStore()
      // hasMore contradicts the number of plants in some rows, and the service must trust hasMore.
      for (let id = 1; id <= (hasMore ? limit : limit + 1); id++) void store.create('ada', { id: BigInt(id), name: '' })
      const list: Store['list'] = async (owner, page) => {
        const { plants } = await store.list(owner, page)
        return { plants, hasMore: plants.at(-1)?.id === BigInt(limit) ? hasMore : true }
      }
      const server = await servePlants(t, { store: overrideStore(store, { list }) })
      assert.equal((await sendRequest(server, get('ada', `/plants?limit=${limit}`))).headers['link'], link)
    })
  }
})

test('the service never reads plants beyond the limit of a list', async () => {
  for (const [limit, first, second] of [
    [1000, [undefined], []],
    [1500, [undefined, createId(999)], [undefined, createId(999)]],
    [2000, [undefined, createId(999)], [undefined, createId(999)]],
  ] as const) {
    const store = createStoreWithNames(repeatName(2500))
    const reads: unknown[] = []
    const list = createPlantList((request) => (reads.push(request.after), store.list('ada', request)), { limit })
    const { body, cursor } = await listPlants(list)
    assert.deepEqual([cursor, reads], [createId(limit - 1), first])
    for await (const piece of body) assert.ok(piece !== '')
    assert.deepEqual(reads, [...first, ...second])
  }
})

test('a list with too many ids for the snapshot continues on the next page', async (t) => {
  const count = 200_000
  const store: Store = {
    ...memoryStore(),
    list(_, { limit, after }) {
      const start = after === undefined ? 0 : Number((after - MIN_INT64) / 2n ** 46n) + 1
      const length = Math.min(limit, count - start)
      const plants = Array.from({ length }, (_, i) => ({ id: createId(start + i), name: String(start + i) }))
      return { plants, hasMore: start + length < count }
    },
  }
  const server = await servePlants(t, { store })
  const lists = (await followLinks(server, `/plants?limit=${count}`)).map(
    (body) => JSON.parse(body) as { name: string }[],
  )
  assert.equal(lists.length, 2)
  assert.ok(lists[0]!.length >= 131_072)
  const names = Array.from({ length: count }, (_, n) => ({ name: String(n) }))
  assert.deepEqual(lists.flat(), names)
})

for (const limit of [Infinity, 4500]) {
  test(`the service reads each page of a list in a separate event-loop tick (limit ${limit})`, async () => {
    let turn = 0
    const count = (): void => {
      turn++
      ticking = setImmediate(count)
    }
    let ticking = setImmediate(count)
    const turns: number[] = []
    const store = createStoreWithNames(repeatName(5000))
    const list = createPlantList((request) => (turns.push(turn), store.list('ada', request)), { limit })
    const { body } = await listPlants(list)
    for await (const piece of body) assert.ok(piece !== '')
    clearImmediate(ticking)
    assert.ok(turns.length >= 5)
    assert.equal(new Set(turns).size, turns.length)
  })
}

// Node accepts all of these versions on an HTTP/1 connection.
for (const version of ['', ' HTTP/1.0', ' HTTP/2.0']) {
  test(`a list that fails halfway does not look complete to a client with${version || ' HTTP/0.9'}`, async (t) => {
    const plants = createStoreWithNames(repeatName(50_000))
    const list: Store['list'] = (owner, page) => {
      if (page.after === createId(29_999)) throw new Error('disk on fire')
      return plants.list(owner, page)
    }
    const port = getPort(await servePlants(t, { store: overrideStore(plants, { list }) }))
    // A read that doesn't fill its buffer may hide a reset from Node, so that it looks like the end of the response.
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(1), callback: () => true } })
    socket.write(`GET /plants${version}\r\nAuthorization: Bearer ada\r\n\r\n`)
    await assert.rejects(once(socket, 'close'), { code: 'ECONNRESET' })
  })
}

suite('a list longer than the maximum string length', () => {
  const rest = encodeFields({ id: 0n, name: 'x'.repeat(1_000_000) })

  test('is sent completely', async (t) => {
    const server = await servePlants(t, { store: createStoreWithCopies(560, rest) })
    const response = await openResponse(server, get('ada'))
    assert.deepEqual([response.statusCode, response.headers['link']], [200, undefined])
    const received = createHash('sha1')
    for await (const chunk of response) received.update(chunk as Buffer)
    const expected = createHash('sha1')
    const plant = Buffer.from(rest)
    expected.update('[{')
    for (let n = 1; n < 560; n++) expected.update(plant)
    assert.equal(received.digest('hex'), expected.update(plant.subarray(0, -2)).update(']').digest('hex'))
  })

  for (const [which, keeping] of STORES) {
    for (const [query, link] of [
      ['?limit=560', undefined],
      ['?limit=559', '<plants?limit=559&after=559>; rel="next"'],
    ] as const) {
      test(`begins to arrive for GET /plants${query}, with a store ${which}`, async (t) => {
        const server = await servePlants(t, { store: keeping(createStoreWithCopies(560, rest)) })
        const response = await openResponse(server, get('ada', `/plants${query}`))
        assert.deepEqual([response.statusCode, response.headers['link']], [200, link])
        const [chunk] = (await once(response, 'data')) as [Buffer]
        assert.equal(chunk.toString('latin1', 0, 12), '[{"name":"xx')
      })
    }
  }
})

suite('a client that does not read its response occupies less than 2 MiB of memory', () => {
  const names = { '60 kB': 'x'.repeat(60_000), '60 kB of JSON escapes': '\u0001'.repeat(10_000) }
  for (const [what, name] of Object.entries(names)) {
    for (const query of ['', '?limit=1000']) {
      test(`for GET /plants${query} with plants of ${what}`, async (t) => {
        const memory = createStoreWithCopies(1001, encodeFields({ id: 0n, name }))
        // Created anew for each page, like rows from a database.
        const renew = (plant: EncodedPlant | NewPlant): EncodedPlant => {
          return new EncodedPlant(plant.id, Buffer.from(encodeFields(plant), 'latin1').toString('latin1'))
        }
        const list = wrapEncodedList(async (owner, page) => {
          const { plants, hasMore } = await listEncodedPlants(memory, owner, page)
          return { plants: plants.map(renew), hasMore }
        })
        const server = await servePlants(t, { store: { ...memory, list } })
        const sockets: Socket[] = []
        server.on('connection', (socket) => sockets.push(socket))

        const before = await measureMemoryUsed()
        const clients = await Promise.all(
          Array.from({ length: 10 }, () => openResponse(server, get('ada', `/plants${query}`))),
        )
        // The operating system's buffers fill up first.
        await waitUntil(() => sockets.every(({ writableNeedDrain }) => writableNeedDrain))
        const each = ((await measureMemoryUsed()) - before) / clients.length
        for (const client of clients) client.destroy()
        assert.ok(each < 2 * 2 ** 20, `${each} bytes`)
      })
    }
  }
})
