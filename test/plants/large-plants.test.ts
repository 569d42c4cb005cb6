import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { MAX_PAGE_BYTES, memoryStore, type NewPlant, type Store } from '../../src/index.ts'
import { EncodedPlant, encodeRest } from '../../src/plants/plant.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { follow } from '../support/wire/follow.ts'
import { memoryUsed } from '../support/heap.ts'
import { until } from '../support/until.ts'
import { get, open, servePlants } from '../support/wire/service.ts'

/** A store with plants that all look like this; it keeps the text once. */
function storeOf(count: number, rest: string): Store {
  const store = memoryStore()
  for (let id = 1; id <= count; id++) assert.equal(store.create('ada', new EncodedPlant(BigInt(id), rest)), true)
  return store
}

function ignoringBytes(store: Store): Store {
  return delegatingStore(store, { list: (owner, page) => store.list(owner, { ...page, maxBytes: Infinity }) })
}

const STORES = [
  ['that stops at maxBytes', (store: Store) => store],
  ['that ignores maxBytes', ignoringBytes],
] as const

suite('a list that is too large for a string', () => {
  const rest = encodeRest({ id: 0n, name: 'x'.repeat(1_000_000) })

  test('comes whole', async (t) => {
    const server = await servePlants(t, { store: storeOf(560, rest) })
    const response = await open(server, get('ada'))
    assert.equal(response.statusCode, 200)
    assert.equal(response.headers['link'], undefined)
    await assertRepeats(response, `{${rest}`, 560)
  })

  for (const [which, keeping] of STORES) {
    for (const [query, link] of [
      ['', undefined],
      ['?limit=560', undefined],
      ['?limit=559', '<?limit=559&after=559>; rel="next"'],
    ] as const) {
      test(`is answered to GET /plants${query} from a store ${which}`, async (t) => {
        const server = await servePlants(t, { store: keeping(storeOf(560, rest)) })
        const response = await open(server, get('ada', `/plants${query}`))
        assert.equal(response.statusCode, 200)
        assert.equal(response.headers['link'], link)
        for await (const chunk of response) {
          assert.equal(String(chunk).slice(0, 12), '[{"name":"xx')
          break
        }
      })
    }
  }
})

/** Reads a list of plants that all look like this, without keeping it. */
async function assertRepeats(response: IncomingMessage, json: string, count: number): Promise<void> {
  const period = json.length + 1
  const repeated = Buffer.from(`,${json},${json}`)
  let length = 0
  for await (const chunk of response) {
    const bytes = chunk as Buffer
    // With the brackets taken for commas, every plant has one before it.
    if (length === 0 && bytes[0] === 0x5b) bytes[0] = 0x2c
    if (length + bytes.length === count * period + 1 && bytes.at(-1) === 0x5d) bytes[bytes.length - 1] = 0x2c
    const from = length % period
    assert.ok(bytes.equals(repeated.subarray(from, from + bytes.length)), `another byte than expected after ${length}`)
    length += bytes.length
  }
  assert.equal(length, count * period + 1)
}

suite('following the links gives each plant once', () => {
  const rows: [string, readonly number[]][] = [
    ['40 plants of 60 kB', Array<number>(40).fill(60_000)],
    ['plants of which each is a page', Array<number>(5).fill(MAX_PAGE_BYTES)],
    ['plants that come to just a page', [MAX_PAGE_BYTES / 2, MAX_PAGE_BYTES / 2]],
    ['plants that come to a byte less than a page', [MAX_PAGE_BYTES / 2, MAX_PAGE_BYTES / 2 - 1]],
    ['1,100 plants of 300 bytes', Array<number>(1100).fill(300)],
    ['a large plant among small ones', [...Array<number>(50).fill(10), 500_000, ...Array<number>(50).fill(10)]],
  ]
  for (const [what, sizes] of rows) {
    for (const [which, keeping] of STORES) {
      test(`of ${what}, from a store ${which}`, async (t) => {
        const names = sizes.map((size, i) => String(i).padEnd(size, 'x'))
        const store = memoryStore()
        for (const [i, name] of names.entries()) void store.create('ada', { id: BigInt(i), name })
        const server = await servePlants(t, { store: keeping(store) })
        const { length } = names
        const limits = [Math.ceil(length / 20), Math.ceil(length / 3), length - 1, length, length + 1, undefined]
        for (const limit of limits) {
          const bodies = await follow(server, limit === undefined ? '/plants' : `/plants?limit=${limit}`)
          const listed = bodies.flatMap((body) => JSON.parse(body) as { name: string }[]).map(({ name }) => name)
          assert.deepEqual(listed, names, `limit ${limit}`)
          assert.equal(bodies.length, Math.ceil(length / (limit ?? length)), `limit ${limit}`)
        }
      })
    }
  }
})

suite('a client that reads nothing costs less than 2 MiB', () => {
  const names = [
    ['60 kB', 'x'.repeat(60_000)],
    ['60 kB of JSON escapes', '\u0001'.repeat(10_000)],
  ] as const
  for (const [what, name] of names) {
    for (const query of ['', '?limit=1000']) {
      test(`with GET /plants${query} of plants of ${what}`, async (t) => {
        const memory = storeOf(1001, encodeRest({ id: 0n, name }))
        // Made anew for each page, as those of a database.
        const renew = (plant: NewPlant): NewPlant => {
          return new EncodedPlant(plant.id, Buffer.from(encodeRest(plant), 'latin1').toString('latin1'))
        }
        const list: Store['list'] = (owner, page) => (memory.list(owner, page) as NewPlant[]).map(renew)
        const server = await servePlants(t, { store: delegatingStore(memory, { list }) })
        const sockets: Socket[] = []
        server.on('connection', (socket) => sockets.push(socket))

        const before = await memoryUsed()
        const clients = await Promise.all(Array.from({ length: 10 }, () => open(server, get('ada', `/plants${query}`))))
        // The buffers of the operating system fill first.
        await until(() => sockets.every(({ writableNeedDrain }) => writableNeedDrain))
        const each = ((await memoryUsed()) - before) / clients.length
        for (const client of clients) client.destroy()
        assert.ok(each < 2 * 2 ** 20, `${each} bytes`)
      })
    }
  }
})
