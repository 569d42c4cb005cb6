import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { StoreUnavailableError, type Store } from '../../../src/plants/store.ts'
import { openPostgres, type StoreSettings } from '../../../src/stores/postgres/open-postgres.ts'
import { readPostgresUrl } from '../../../src/stores/postgres/postgres-url.ts'
import { figuresOf } from '../../../src/stores/figures.ts'
import { readDocument } from '../../support/package/documents.ts'
import { failure } from '../../support/database/failures.ts'
import { countTimers } from '../../support/event-loop.ts'
import { needsDebian, PostgresServer } from '../../support/wire/debian-servers.ts'
import { series, startWithMetrics } from '../../support/program/metrics.ts'
import { administer, needsServer, type TestDatabase } from '../../support/database/postgres-server.ts'
import { Program, startProgram, TOKEN } from '../../support/program/program.ts'
import { openProxiedDatabase, useProxiedDatabase } from '../../support/database/servers/proxied-database.ts'
import type { TcpProxy } from '../../support/wire/tcp-proxy.ts'
import { temporaryFile } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'

async function create(program: Program, id: number): Promise<[status: number, body: unknown]> {
  const response = await program.fetch('/plants', { method: 'POST', body: `{"id":${id},"name":"Fern"}` })
  return [response.status, await response.json()]
}

suite('in this process', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let proxy: TcpProxy
  let url: string
  let close: () => Promise<void>
  before(async () => {
    ;({ database, proxy, url, close } = await openProxiedDatabase())
  })
  after(() => close())

  interface Opened {
    readonly store: Store
    /** What has happened, and why. */
    readonly events: readonly [event: string, reason: string][]
  }

  async function openStore(url: string, settings: Partial<StoreSettings> = {}): Promise<Opened> {
    const events: [string, string][] = []
    const store = await openPostgres(url, {
      postgresPoolSize: 1,
      migrate: true,
      postgresBatch: 128,
      storeTimeoutMs: 10_000,
      onEvent: (event, reason) => events.push([event, String(reason)]),
      ...settings,
    })
    return { store, events }
  }

  test('has the driver give up connections that are slow to come, dead or old', async (t) => {
    t.mock.method(Math, 'random', () => 0.5)
    const { mock } = t.mock.method(pg, 'Pool')
    const { store } = await openStore(url, { postgresPoolSize: 3 })
    await store.close?.()
    const { Client, ...options } = mock.calls[0]!.arguments[0]!
    assert.equal(typeof Client, 'function')
    assert.deepEqual(options, {
      connectionString: readPostgresUrl(url),
      max: 3,
      fallback_application_name: 'plant-store',
      connectionTimeoutMillis: 2000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // Between four and five minutes.
      maxLifetimeSeconds: 270,
    })
  })

  test('gives a statement two fifths of the time of a call', async () => {
    const { store } = await openStore(url, { storeTimeoutMs: 1001 })
    proxy.block()
    const { cause } = await failure((async () => store.delete('ann', 1n))())
    assert.equal(String(cause), 'NoAnswerError: No answer within 401 ms.')
    await store.close?.()
    proxy.unblock()
  })

  test('tells of a connection that broke, and of statements that are not kept', async () => {
    const { store, events } = await openStore(url)
    await database.openPool().query(`
      CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'no such statement' USING ERRCODE = '26000'; END $$;
      CREATE TRIGGER forget BEFORE INSERT ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION forget()`)
    await assert.rejects(async () => store.create('ann', { id: 1n, name: 'fern' }), { code: '26000' })
    proxy.cut()
    await until(() => events.length === 2)
    // What stands in for a server has another reason of its own.
    const told = events.map(([event, reason]) => `${event}: ${reason.replace(/\(.*\)/, '()')}`)
    assert.deepEqual(told, [
      'warning: A pooler does not keep prepared statements (), so they are not used any more.',
      'disconnected: Error: Connection terminated unexpectedly',
    ])
    await store.close?.()
    await store.close?.()
  })

  test('counts the connections of its pool, and the statements that wait for one', async () => {
    const { store } = await openStore(url, { storeTimeoutMs: 1000 })
    const count = (): number[] => figuresOf(store).gauges.map(([, , read]) => read())
    assert.deepEqual(count(), [0, 1, 0])
    proxy.block()
    const calls = [async () => store.delete('ann', 1n), async () => store.list('ann', { limit: 1, maxBytes: 1 })]
    const outcomes = Promise.allSettled(calls.map((call) => call()))
    await until(() => count()[2] === 1)
    assert.deepEqual(count(), [1, 0, 1])
    await outcomes
    await store.close?.()
    proxy.unblock()
  })

  test('closes its connections, which would keep the process alive', async () => {
    const timersBefore = countTimers()
    const { store } = await openStore(url)
    assert.ok(countTimers() > timersBefore)
    await store.close?.()
    assert.equal(countTimers(), timersBefore)
  })

  test('does not begin if a file is missing that the URL names', async () => {
    await assert.rejects(openStore(`${url}?sslmode=verify-ca&sslrootcert=/nowhere`), { code: 'ENOENT' })
  })

  test('tries again after half a second and then after twice the time, and no more once it is closed', async () => {
    await proxy.close()
    const timersBefore = countTimers()
    const { store, events } = await openStore(url)
    const startedAt = performance.now()
    await assert.rejects(async () => store.ping?.(), StoreUnavailableError)
    const { message, cause } = await failure((async () => store.list('ann', { limit: 1, maxBytes: 1 }))())
    assert.equal(message, 'The database could not be used yet.')
    assert.match(String((cause as Error).cause), /ECONNREFUSED/)
    await until(() => events.length === 3)
    const waitedMs = performance.now() - startedAt
    assert.ok(waitedMs >= 1490 && waitedMs < 5000, `${waitedMs} ms`)
    await store.close?.()
    assert.equal(countTimers(), timersBefore)
    await proxy.open()
    assert.ok(events.every(([event]) => event === 'unreachable'))
  })
})

test('starts before its server, says so once, and is ready within two seconds of its coming', async (t) => {
  const { proxy, url } = await useProxiedDatabase(t)
  await proxy.close()
  const program = await startProgram(t, { PLANT_STORE_URL: url })
  assert.equal((await program.fetch('/livez')).status, 200)
  assert.equal((await program.fetch('/readyz')).status, 503)
  const message = 'The plants are out of reach at the moment; try again.'
  assert.deepEqual(await create(program, 1), [503, { error: 50300, message }])
  assert.equal((await program.fetch('/plants')).status, 503)
  assert.equal((await program.fetch('/plants/1', { method: 'DELETE' })).status, 503)
  assert.match(String((await program.logged('unreachable'))['reason']), /ECONNREFUSED/)
  await program.logged('unready')
  await proxy.open()
  const opened = performance.now()
  await program.ready()
  // Most of it is for a busy machine.
  assert.ok(performance.now() - opened < 10_000)
  await program.logged('ready')
  assert.deepEqual(await create(program, 1), [200, { name: 'Fern' }])
})

test('has metrics of its connections, which docs/postgres.md lists', async (t) => {
  const { url } = await useProxiedDatabase(t)
  const { program, admin } = await startWithMetrics(t, { PLANT_STORE_URL: url })
  await program.ready()
  const shown = await series(admin, /^plant_store_postgres/, 3)
  assert.deepEqual(shown, [
    'plant_store_postgres_idle_connections 1',
    'plant_store_postgres_used_connections 0',
    'plant_store_postgres_waiting_statements 0',
  ])
  const { text } = readDocument('docs/postgres.md')
  const listed = [...text.matchAll(/^\| `(plant_store_postgres_\w+)` \|/gm)].map(([, name]) => name)
  const names = shown.map((line) => line.split(' ')[0])
  assert.deepEqual(listed.sort(), names)
})

test('stops while its server is away', async (t) => {
  const { proxy, url } = await useProxiedDatabase(t)
  await proxy.close()
  const program = await startProgram(t, { PLANT_STORE_URL: url })
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
})

test('stops while its server says nothing', async (t) => {
  const { proxy, url } = await useProxiedDatabase(t)
  const program = await startProgram(t, { PLANT_STORE_URL: url, PLANT_STORE_STORE_TIMEOUT_MS: '1000' })
  proxy.block()
  const { error } = (await create(program, 1))[1] as { error: number }
  assert.equal(error, 50301)
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
})

test('makes no table if it is told so, and ends the start if there is none', async (t) => {
  const { database, url } = await useProxiedDatabase(t)
  const environment = { PLANT_STORE_URL: url, PLANT_STORE_MIGRATE: '0' }
  const refused = new Program({ PORT: '0', ...environment })
  assert.equal(await refused.ended, 2)
  assert.match(
    refused.stderr.all.join('\n'),
    /^plant-store: PLANT_STORE_URL .*: it has no table plant_store_plants, [^\n]*$/,
  )
  await database
    .openPool()
    .query('CREATE TABLE plant_store_plants (owner text, id bigint, name text, tag text, PRIMARY KEY (owner, id))')
  const program = await startProgram(t, environment)
  assert.deepEqual(await create(program, 1), [200, { name: 'Fern' }])
})

/** Starts a program whose role has these rights to the table that is there. */
async function startAsClerk(t: TestContext, rights: string): Promise<Program> {
  const { database, url } = await useProxiedDatabase(t)
  const role = `${database.config.database}_clerk`
  assert.equal(await new Program({ PLANT_STORE_URL: url }, ['--migrate']).ended, 0)
  await database.openPool().query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'p@ss#w0rd'; REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO ${role}; GRANT ${rights} ON plant_store_plants TO ${role}`,
  )
  t.after(() => administer(`DROP ROLE ${role}`))
  return startProgram(t, { PLANT_STORE_URL: url.replace(/\/\/[^@]*@/, `//${role}:p%40ss%23w0rd@`) })
}

test('needs no rights but three if the table is there', { skip: needsServer }, async (t) => {
  const program = await startAsClerk(t, 'SELECT, INSERT, DELETE')
  assert.deepEqual(await create(program, 1), [200, { name: 'Fern' }])
  assert.equal(await (await program.fetch('/plants')).text(), '[{"name":"Fern"}]')
  assert.equal((await program.fetch('/plants/1', { method: 'DELETE' })).status, 204)
  assert.equal((await program.fetch('/readyz')).status, 200)
})

for (const rights of ['SELECT, INSERT', 'SELECT, DELETE, INSERT (owner, id, name)']) {
  test(`is not ready with no rights but ${rights}`, { skip: needsServer }, async (t) => {
    const program = await startAsClerk(t, rights)
    assert.match(String((await program.logged('unreachable'))['reason']), /permission denied for table/)
    assert.equal((await program.fetch('/readyz')).status, 503)
  })
}

test('has no more connections than it may', { skip: needsServer }, async (t) => {
  const { database, url } = await useProxiedDatabase(t)
  const program = await startProgram(t, { PLANT_STORE_URL: url, PLANT_STORE_POSTGRES_POOL_SIZE: '2' })
  await Promise.all(Array.from({ length: 20 }, (_, page) => program.fetch(`/plants?limit=${page + 1}`)))
  const { rows } = await database.openPool().query(
    `SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'plant-store'`,
  )
  assert.deepEqual(rows, [{ count: 2 }])
})

for (const [batch, most] of [
  ['1', 3],
  ['2', 1],
] as const) {
  test(`with ${batch} plants a statement, sends ${most} at once that create`, { skip: needsServer }, async (t) => {
    const { database, url } = await useProxiedDatabase(t)
    const program = await startProgram(t, {
      PLANT_STORE_URL: url,
      PLANT_STORE_POSTGRES_BATCH: batch,
      PLANT_STORE_POSTGRES_POOL_SIZE: '3',
    })
    const pool = database.openPool()
    const holder = await pool.connect()
    await holder.query('BEGIN; LOCK TABLE plant_store_plants')
    const created = Promise.all([1, 2, 3, 4, 5].map((id) => create(program, id)))
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    const count = async (): Promise<number> => (await pool.query(waiting)).rows.length
    let counted = 0
    while ((counted = await count()) < most) await sleep(10)
    // Its end ends the lock, and the database could not be closed before.
    holder.release(true)
    assert.equal(counted, most)
    assert.deepEqual(new Set((await created).map(([status]) => status)), new Set([200]))
  })
}

async function assertRefused(url: string, problem: string): Promise<void> {
  const program = new Program({ PORT: '0', PLANT_STORE_URL: url })
  const line = `plant-store: PLANT_STORE_URL names a store that cannot be opened: ${problem}`
  assert.deepEqual([await program.ended, program.stdout.all, program.stderr.all], [2, [], [line]])
}

test('ends the start if the database is not UTF-8', { skip: needsServer }, async (t) => {
  const { database, url } = await useProxiedDatabase(t)
  const pool = database.openPool()
  const name = `${database.config.database}_latin`
  await pool.query(`CREATE DATABASE ${name} ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
  t.after(() => administer(`DROP DATABASE ${name} WITH (FORCE)`))
  await assertRefused(url.replace(/[^/]*$/, name), 'The server_encoding is LATIN1; plants need UTF8.')
})

test('ends the start if the table is not that of the store', async (t) => {
  const { database, url } = await useProxiedDatabase(t)
  await database.openPool().query('CREATE TABLE plant_store_plants (owner text, id bigint, name text, tag text)')
  const problem = 'it has no unique index on (owner, id) that is not deferrable'
  await assertRefused(url, `The table public.plant_store_plants cannot keep plants: ${problem}.`)
})

test('ends the start if sessions are not UTF-8', async (t) => {
  const { database, url } = await useProxiedDatabase(t)
  // The driver asks for UTF-8, and whatever stands between may change that. Here a function in front of the real one
  // does: for the sessions to come, and for the one that all connections share where there is no server.
  await database.openPool().query(
    `CREATE FUNCTION public.current_setting(name text) RETURNS text LANGUAGE sql AS
      $$ SELECT CASE name WHEN 'client_encoding' THEN 'LATIN1' ELSE pg_catalog.current_setting(name) END $$;
    ALTER DATABASE ${database.config.database} SET search_path = public, pg_catalog;
    SET search_path = public, pg_catalog`,
  )
  await assertRefused(url, 'The client_encoding is LATIN1; plants need UTF8.')
})

suite('with servers of its own', { skip: needsDebian }, () => {
  test('goes over a Unix socket', async (t) => {
    const server = await PostgresServer.start(t)
    const url = `postgres://plants:secret@/postgres?host=${server.folder}&port=${server.port}`
    const program = await startProgram(t, { PLANT_STORE_URL: url })
    assert.deepEqual(await create(program, 1), [200, { name: 'Fern' }])
    const sessions = `SELECT client_addr FROM pg_stat_activity WHERE application_name = 'plant-store'`
    assert.deepEqual(await server.query(sessions), [{ client_addr: null }])
  })

  test('goes over TLS as libpq would, and prints nothing but its log', async (t) => {
    const tls = ['ssl=on', `ssl_cert_file='localhost.crt'`, `ssl_key_file='localhost.key'`]
    const server = await PostgresServer.start(t, tls)
    const program = await startProgram(t, { PLANT_STORE_URL: `${server.url}?sslmode=require` })
    assert.deepEqual(await create(program, 1), [200, { name: 'Fern' }])
    const sessions = `SELECT bool_and(ssl) AS "isSecure" FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE application_name = 'plant-store'`
    assert.deepEqual(await server.query(sessions), [{ isSecure: true }])
    const events = program.stderr.all.map((line) => (JSON.parse(line) as { event: string }).event)
    assert.deepEqual(events, ['start'])
  })

  test('has a new password for new connections after SIGHUP, without a restart', async (t) => {
    const server = await PostgresServer.start(t)
    writeFileSync(
      join(server.data, 'pg_hba.conf'),
      'host all clerk 127.0.0.1/32 scram-sha-256\nhost all plants 127.0.0.1/32 trust\n',
    )
    await server.query(`CREATE ROLE clerk SUPERUSER LOGIN PASSWORD 'old'`)
    await server.control('reload')
    const urlWith = (password: string): string => server.url.replace('plants@', `clerk:${password}@`)
    const file = temporaryFile(t, urlWith('old'))
    const program = await startProgram(t, { PLANT_STORE_URL_FILE: file })
    await program.ready()

    await server.query(`ALTER ROLE clerk PASSWORD 'n/w'`)
    await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'clerk'`)
    await server.until(`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE usename = 'clerk')`)
    while ((await program.fetch('/readyz')).status !== 503) await sleep(20)

    writeFileSync(file, urlWith('n/w'))
    program.child.kill('SIGHUP')
    const { reason } = await program.logged('store-url-kept')
    assert.match(String(reason), /^PLANT_STORE_URL_FILE takes|^takes postgres/)
    writeFileSync(file, urlWith('n%2Fw'))
    program.child.kill('SIGHUP')
    assert.equal((await program.logged('store-url-read'))['changed'], true)
    await program.ready()
    assert.deepEqual(await create(program, 1), [200, { name: 'Fern' }])
  })

  test('waits for a standby to be promoted', async (t) => {
    const primary = await PostgresServer.start(t)
    const first = await startProgram(t, { PLANT_STORE_URL: primary.url })
    assert.deepEqual(await create(first, 1), [200, { name: 'Fern' }])
    const standby = await PostgresServer.startStandby(t, primary, 'standby')
    const program = await startProgram(t, { PLANT_STORE_URL: standby.url, PLANT_STORE_TOKENS: `ada:${TOKEN}` })
    assert.equal((await program.fetch('/plants')).status, 503)
    assert.equal((await program.fetch('/readyz')).status, 503)
    assert.match(String((await program.logged('unreachable'))['reason']), /The server is read-only/)
    await standby.control('promote', '--wait')
    await program.ready()
    assert.equal(await (await program.fetch('/plants')).text(), '[{"name":"Fern"}]')
  })
})
