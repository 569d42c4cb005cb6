import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/plants/store.ts'
import { openPostgres } from '../../src/stores/postgres/open-postgres.ts'
import { openDatabase, openProxiedDatabase, runAdminSql, skipWithoutPostgres } from '../support/postgres-database.ts'
import { waitUntil } from '../support/wait-until.ts'

type Scope = Parameters<typeof openDatabase>[0]
type Settings = Parameters<typeof openPostgres>[1]

async function open(
  t: Scope,
  url: string,
  settings: Partial<Settings> = {},
): Promise<{ store: Store; events: string[] }> {
  const events: string[] = []
  const store = await openPostgres(url, {
    migrate: true,
    storeTimeoutMs: 10_000,
    postgresTable: 'public.plant_store_plants',
    postgresPoolSize: 10,
    currentUrl: () => url,
    onEvent: (event, reason) => events.push(`${event}: ${reason instanceof Error ? reason.message : String(reason)}`),
    ...settings,
  })
  t.after(() => store.close!())
  return { store, events }
}

/** Creates a role, and returns the URL for it. It's dropped with the database. */
async function createRole(t: Scope, database: Awaited<ReturnType<typeof openDatabase>>, options: string) {
  const role = `role_${database.config.database}`
  await runAdminSql(`CREATE ROLE ${role} LOGIN PASSWORD 'first' ${options}`)
  t.after(() => runAdminSql(`DROP ROLE ${role}`))
  await database.openPool().query(`GRANT CREATE ON SCHEMA public TO ${role}`)
  const url = new URL(database.url)
  url.username = role
  url.password = 'first'
  return { role, url: url.href }
}

const plant = (id: number) => ({ id: BigInt(id), name: 'Monstera' })

test('openPostgres rejects a URL that the driver cannot parse', async (t) => {
  await assert.rejects(open(t, 'postgres://user:pass/word@host/db'), (error: Error) => {
    assert.doesNotMatch(error.message, /word/)
    return true
  })
})

describe('openPostgres', { skip: skipWithoutPostgres }, () => {
  test('starts without a server, and works as soon as there is one', async (t) => {
    const { proxy, url } = await openProxiedDatabase(t)
    await proxy.close()
    const { store, events } = await open(t, url)
    await assert.rejects(async () => store.ping!(), { code: 'PLANT_STORE_UNAVAILABLE' })
    await assert.rejects(async () => store.create('ada', plant(1)), { code: 'PLANT_STORE_UNAVAILABLE' })
    assert.match(events[0]!, /^unreachable: The database is unavailable: connect ECONNREFUSED 127\.0\.0\.1:\d+$/)
    await proxy.open()
    await waitUntil(async () =>
      Promise.resolve(store.ping!()).then(
        () => true,
        () => false,
      ),
    )
    assert.equal(await store.create('ada', plant(1)), true)
  })

  test('fails if the table is missing and must not be created', async (t) => {
    const { url } = await openDatabase(t)
    await assert.rejects(open(t, url, { migrate: false }), /relation "public.plant_store_plants" does not exist/)
  })

  test('fails if the encoding of the database is not UTF8', async (t) => {
    const { config, url } = await openDatabase(t)
    const name = `${config.database}_latin1`
    await runAdminSql(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'`)
    t.after(() => runAdminSql(`DROP DATABASE ${name} WITH (FORCE)`))
    await assert.rejects(
      open(t, url.replace(config.database, name)),
      /the encoding of the database must be UTF8, not LATIN1\.$/,
    )
  })

  test('refuses a read-only server', async (t) => {
    const { url, config } = await openDatabase(t)
    await runAdminSql(`ALTER DATABASE ${config.database} SET default_transaction_read_only = on`)
    const { events } = await open(t, url)
    assert.equal(events[0], 'unreachable: The server is read-only.')
  })

  test('reports that the URL lacks a password', async (t) => {
    const { url } = await openDatabase(t)
    const { events } = await open(t, url.replace(/:[^:@/]*@/, '@'))
    if (events.length === 0) return t.skip('the server of TEST_POSTGRES_URL requires no password')
    assert.equal(
      events[0],
      'unreachable: The database is unavailable: The server requires a password, but the URL contains none.',
    )
  })

  test('uses a rotated password for new connections', async (t) => {
    const database = await openDatabase(t)
    const { role, url } = await createRole(t, database, '')
    let currentUrl = url
    const { store } = await open(t, url, { currentUrl: () => currentUrl })
    await runAdminSql(`ALTER ROLE ${role} PASSWORD 'second'`)
    currentUrl = url.replace('first', 'second')
    const ids = Array.from({ length: 20 }, (_, id) => id)
    await Promise.all(ids.map(async (id) => assert.equal(await store.delete('ada', BigInt(id)), false)))
  })

  for (const limit of [1, 2, 3]) {
    test(`uses the connections that CONNECTION LIMIT ${limit} allows`, async (t) => {
      const database = await openDatabase(t)
      const { url } = await createRole(t, database, `CONNECTION LIMIT ${limit}`)
      const { store } = await open(t, url)
      const calls = Array.from({ length: 100 }, async (_, id) => {
        assert.equal(await store.create(`owner ${id % 3}`, plant(id)), true)
        assert.equal(await store.delete(`owner ${id % 3}`, BigInt(id)), true)
      })
      await Promise.all(calls)
      await store.ping!()
    })
  }
})
