import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createHttpServer } from '../../src/http-server/http-server.ts'
import { createServer } from '../../src/http-server/create-server.ts'
import { parseJson } from '../../src/http/json.ts'
import { parseNewPlant } from '../../src/http/new-plant.ts'
import { createPlantStore, memoryStore, StoreUnavailableError } from '../../src/index.ts'
import type { CommonOptions, NewPlant, Store } from '../../src/index.ts'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import { tagOf } from '../../src/plants/plant.ts'
import { textLength } from '../../src/stores/batch-size.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { createMockPool } from '../support/database/mock-pool.ts'
import { openSqliteStore, skipWithoutSqlite } from '../support/database/sqlite-file.ts'
import { whilePolluted, withPollutedPrototype } from '../support/prototype-pollution.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { del, get, post, sendRequest, serve, servePlants, type TestRequest } from '../support/wire/service.ts'

const FERN = '{"id":1,"name":"Fern"}'
const WHOLE_LIST = { limit: 1000, maxBytes: 1_000_000 }

/** Creates a custom store whose plants have no `tag` property. */
const createCustomStore = (): Store => ({
  create: () => true,
  list: () => ({ plants: [{ id: 1n, name: 'Fern' }], hasMore: false }),
  delete: () => true,
})

/** Creates a Postgres store, and records the names and values of its statements. */
function startPostgres() {
  const queries: { readonly name: string | undefined; readonly values: readonly unknown[] }[] = []
  const pool = createMockPool(({ name, values }) => {
    queries.push({ name, values: [...values] })
    return Promise.resolve({ rows: [], rowCount: 1 })
  })
  return { store: postgresStore(pool), queries }
}

suite('a polluted Object.prototype.tag', () => {
  test('adds no tag to the response for a new plant', async (t) => {
    const server = await servePlants(t)
    const { body } = await whilePolluted({ tag: 'eve' }, () => sendRequest(server, post('ada', FERN)))
    assert.equal(body, '{"name":"Fern"}')
  })

  for (const [length, padding] of [
    ['short', ''],
    ['long', ' '.repeat(1000)],
  ] as const) {
    test(`adds no tag to a plant parsed from a ${length} body`, () => {
      const body = Buffer.from(FERN + padding)
      const tag = withPollutedPrototype({ tag: 'eve' }, () => parseNewPlant(parseJson(body), body.length).tag)
      assert.equal(tag, undefined)
    })
  }

  test('adds no tag to plants from a custom store', async (t) => {
    const server = await servePlants(t, { store: createCustomStore() })
    const { body } = await whilePolluted({ tag: 'eve' }, () => sendRequest(server, get('ada')))
    assert.equal(body, '[{"name":"Fern"}]')
  })

  test('adds no tag to plants listed by the memory store', async () => {
    const store = memoryStore()
    await store.create('ada', { id: 1n, name: 'Fern' })
    const tags = await whilePolluted({ tag: 'eve' }, async () => {
      const { plants } = await store.list('ada', WHOLE_LIST)
      return plants.map(({ tag }) => tag)
    })
    assert.deepEqual(tags, [undefined])
  })

  for (const [name, isSkipped, open] of [
    ['in memory', false, () => memoryStore()],
    ['in SQLite', skipWithoutSqlite, (t) => openSqliteStore(t).store],
  ] as const satisfies readonly (readonly [
    string,
    string | false,
    (t: Parameters<typeof openSqliteStore>[0]) => Store,
  ])[]) {
    test(`adds no tag to a plant stored ${name}`, { skip: isSkipped }, async (t) => {
      const store = open(t)
      await whilePolluted({ tag: 'eve' }, async () => store.create('ada', { id: 1n, name: 'Fern' }))
      assert.deepEqual((await store.list('ada', WHOLE_LIST)).plants, [{ id: 1n, name: 'Fern' }])
    })
  }

  test('adds no tag to a plant stored in Postgres', async () => {
    const { store, queries } = startPostgres()
    await whilePolluted({ tag: 'eve' }, () => store.create('ada', { id: 1n, name: 'Fern' }))
    assert.deepEqual(queries[0]?.values, ['ada', '1', 'Fern', null])
  })

  test('does not increase the size of a plant without a tag', () => {
    const plant: NewPlant = { id: 1n, name: 'Fern' }
    assert.equal(
      withPollutedPrototype({ tag: 'eve' }, () => textLength(plant)),
      4,
    )
  })

  test("does not hide a tag that the plant's class defines as a getter", () => {
    class Phlox {
      readonly name = 'eve'
      get tag(): string {
        return this.name
      }
    }
    assert.equal(
      withPollutedPrototype({ tag: 'eve' }, () => tagOf(new Phlox())),
      'eve',
    )
  })
})

suite('prototype pollution', () => {
  for (const [effect, members, request] of [
    ['adds no header field to an error response', { headers: ['X-Eve', '1'] }, post('ada', '{')],
    ['does not change the Content-Type of a list', { contentType: 'text/html' }, get('ada')],
    ['does not change the Content-Type of an error response', { contentType: 'text/html' }, post('ada', '{')],
    ['does not make a list cacheable', { allowsCaching: true }, get('ada')],
    ['does not make an error response cacheable', { allowsCaching: true }, get('ada', '/plants?limit=x')],
    ['does not make a DELETE require a body', { hasBody: true }, del('ada', '1')],
  ] as const satisfies readonly (readonly [string, object, TestRequest])[]) {
    test(effect, async (t) => {
      const server = await servePlants(t)
      const expected = await sendRequest(server, request)
      assert.deepEqual(await whilePolluted(members, () => sendRequest(server, request)), expected)
    })
  }

  for (const [effect, members, hook] of [
    ['adds no error code to the onResponse event of a successful response', { error: 40000 }, 'onResponse'],
    ['does not call onError for a successful response', { failure: { error: 'eve' } }, 'onError'],
  ] as const satisfies readonly (readonly [string, object, keyof CommonOptions])[]) {
    test(effect, async (t) => {
      const reported: unknown[] = []
      const options = { onResponse: () => undefined, [hook]: (event: unknown) => reported.push(event) }
      const server = await servePlants(t, options)
      await whilePolluted(members, () => sendRequest(server, get('ada')))
      const errors = reported.map((event) => (event as { readonly error?: unknown }).error)
      assert.deepEqual(errors, hook === 'onError' ? [] : [undefined])
    })
  }

  for (const [member, parsed] of [
    ['rawBody', { body: JSON.parse(FERN) as unknown }],
    ['body', {}],
  ] as const) {
    test(`does not replace a body that a parser has read (polluted ${member})`, async (t) => {
      const created: NewPlant[] = []
      const store = { ...createCustomStore(), create: (_: string, plant: NewPlant) => created.push(plant) > 0 }
      const plants = createPlantStore({ tokens: { secret: 'ada' }, store, onError: () => undefined })
      const server = await serve(t, (request, response) => {
        request.resume().on('end', () => plants(Object.assign(request, parsed), response))
      })
      const request = post('secret', FERN)
      await whilePolluted({ [member]: '{"id":1,"name":"Eve"}' }, () => sendRequest(server, request))
      assert.ok(created.every(({ name }) => name === 'Fern'))
    })
  }

  test('does not change which plants the memory store lists', async () => {
    const store = memoryStore()
    await store.create('ada', { id: 1n, name: 'Fern' })
    const { plants } = await whilePolluted({ after: 1n }, async () => store.list('ada', WHOLE_LIST))
    assert.equal(plants.length, 1)
  })

  test('does not make the outcome of a failed call unknown', () => {
    const error = withPollutedPrototype({ isOutcomeUnknown: true }, () => new StoreUnavailableError('away'))
    assert.equal(error.isOutcomeUnknown, false)
  })

  for (const members of [{ max: 1 }, { maxLimit: { min: 1, max: 1 } }]) {
    test(`does not change the permitted range of an option (polluted ${Object.keys(members).join()})`, () => {
      withPollutedPrototype(members, () => createPlantStore({ tokens: { secret: 'ada' }, maxLimit: 2 }))
    })
  }

  test('does not change the options of the conformance suite', async () => {
    const checks: (() => unknown)[] = []
    const create = (): Store => ({ ...memoryStore(), delete: () => true })
    withPollutedPrototype({ seed: 7, storeTimeoutMs: 'eve' }, () => {
      storeConformance({ test: (name, check) => name.includes('random') && checks.push(check), create })
    })
    await assert.rejects(Promise.resolve(checks[0]!()), /\(seed 1\)/)
  })
})

suite('prototype pollution in the HTTP server', () => {
  test('does not add an onRequest hook', async (t) => {
    const { server } = withPollutedPrototype({ onRequest: 'eve' }, () =>
      createServer((_, response) => response.end('leaf')),
    )
    await serve(t, server)
    assert.equal((await sendRequest(server, get('ada'))).body, 'leaf')
  })

  test('does not prevent the rejection of a malformed request', async (t) => {
    const { server } = createServer(() => undefined)
    await serve(t, server)
    await whilePolluted({ isRejected: true }, async () => {
      const client = await RawConnection.open(server)
      assert.match(await client.send('?\r\n\r\n').closed, /^HTTP\/1\.1 400 /)
    })
  })

  test('adds no method, URL or header field to a malformed request', async (t) => {
    const heads: unknown[] = []
    const { server } = createHttpServer(
      () => undefined,
      {},
      ({ method, url, rawHeaders }) => {
        heads.push([method, url, rawHeaders])
        return []
      },
    )
    await serve(t, server)
    await whilePolluted(
      { method: 'OPTIONS', url: '/plants', rawHeaders: ['Origin', 'https://eve.example'] },
      async () => {
        const client = await RawConnection.open(server)
        await client.send('?\r\n\r\n').closed
      },
    )
    assert.deepEqual(heads, [[undefined, undefined, undefined]])
  })
})

suite('prototype pollution in the Postgres store', () => {
  for (const [effect, members] of [
    ['does not time out a statement', { timeoutError: 'eve' }],
    ['does not replace a page of plants', { next: 'eve' }],
  ] as const) {
    test(effect, async () => {
      const { store } = startPostgres()
      const page = await whilePolluted(members, () => {
        return Promise.all([store.list('ada', WHOLE_LIST), store.list('ada', WHOLE_LIST)])
      })
      assert.deepEqual(page, [
        { plants: [], hasMore: false },
        { plants: [], hasMore: false },
      ])
    })
  }

  test('does not name an unprepared statement', async () => {
    const { store, queries } = startPostgres()
    await whilePolluted({ name: 'eve' }, () => store.ping())
    assert.deepEqual(queries, [{ name: undefined, values: [] }])
  })
})
