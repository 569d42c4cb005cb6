import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, suite, test, type TestContext } from 'node:test'
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { openPostgres } from '../../../src/stores/postgres/open-postgres.ts'
import { schema } from '../../../src/stores/postgres/postgres-store.ts'
import { metricsOf } from '../../../src/stores/store-metrics.ts'
import { readDocument } from '../../support/package/documents.ts'
import { captureUnavailable } from '../../support/database/errors.ts'
import { countTimers } from '../../support/event-loop.ts'
import { skipWithoutDebianServers, PostgresServer } from '../../support/wire/debian-servers.ts'
import { runAdminSql, skipWithoutPostgres, openProxiedDatabase } from '../../support/database/postgres-database.ts'
import { Program, startProgram } from '../../support/program/program.ts'
import { createTempFile } from '../../support/temp-files.ts'
import { waitUntil } from '../../support/wait-until.ts'

const CREATED = [200, { name: 'Fern' }]

async function createPlant(program: Program, id = 1) {
  const response = await program.fetch('/plants', { method: 'POST', body: `{"id":${id},"name":"Fern"}` })
  return [response.status, await response.json()]
}

suite('openPostgres', { timeout: 60_000 }, async () => {
  const { database, proxy, url } = await openProxiedDatabase({ after })

  async function openStore(url: string, own = {}) {
    const events: string[] = []
    const store = await openPostgres(url, {
      postgresPoolSize: 1,
      migrate: true,
      postgresBatch: 128,
      storeTimeoutMs: 10_000,
      onEvent: (event) => events.push(event),
      ...own,
    })
    return { store, events }
  }

  test("sets the driver's connection timeout, keep-alive and maximum connection lifetime", async (t) => {
    t.mock.method(Math, 'random', () => 0.5)
    const { mock } = t.mock.method(pg, 'Pool')
    const { store } = await openStore(url, { postgresPoolSize: 3 })
    await store.close?.()
    const { Client, ...options } = mock.calls[0]!.arguments[0]!
    assert.equal(typeof Client, 'function')
    assert.deepEqual(options, {
      max: 3,
      fallback_application_name: 'plant-store',
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 0,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // Between four and five minutes.
      maxLifetimeSeconds: 270,
    })
  })

  test('limits each statement to two fifths of the store timeout', async (t) => {
    t.after(() => proxy.unblock())
    const { store } = await openStore(url, { storeTimeoutMs: 2501 })
    proxy.block()
    const { cause } = await captureUnavailable((async () => store.delete('ann', 1n))())
    assert.equal(String(cause), 'NoResponseError: No response within 1001 ms.')
    await store.close?.()
  })

  test('exposes the metrics that docs/postgres.md lists', async (t) => {
    t.after(() => proxy.unblock())
    const timersBefore = countTimers()
    for (const [postgresBatch, expected] of [
      [1, [3, 0, 1]],
      [2, [2, 0, 0]],
    ] as const) {
      const { store } = await openStore(url, { postgresPoolSize: 3, postgresBatch })
      const { gauges } = metricsOf(store)
      const count = () => gauges.map(([, , read]) => read())
      assert.deepEqual(count(), [0, 1, 0])
      proxy.block()
      const ids = [1n, 2n, 3n, 4n, 5n]
      const created = ids.map(async (id) => store.create(`${postgresBatch}`, { id, name: 'fern' }))
      const listed = store.list('ann', { limit: 1, maxBytes: 1 })
      await nextTick()
      assert.deepEqual(count(), expected)
      proxy.unblock()
      assert.deepEqual(new Set(await Promise.all(created)), new Set([true]))
      await listed
      await store.close?.()
      await store.close?.()
      const { text } = readDocument('docs/postgres.md')
      const documented = [...text.matchAll(/^\| `(plant_store_postgres_\w+)` \|/gm)].map(([, name]) => name)
      assert.deepEqual(documented.sort(), gauges.map(([name]) => name).sort())
    }
    assert.equal(countTimers(), timersBefore)
  })

  test('opens a database whose name is percent-encoded in the URL', { skip: skipWithoutPostgres }, async (t) => {
    const name = `${database.config.database} a/b?c#d@e&f+g%2F`
    await runAdminSql(`CREATE DATABASE "${name}"`)
    t.after(() => runAdminSql(`DROP DATABASE "${name}" WITH (FORCE)`))
    const encoded = encodeURIComponent(name)
    for (const url of [database.url.replace(/[^/]*$/, encoded), `${database.url}?dbname=${encoded}`]) {
      const { store } = await openStore(url)
      await store.ping?.()
      await store.close?.()
    }
    const pool = database.openPool({ database: name })
    const { rowCount } = await pool.query('SELECT FROM plant_store_plants')
    await pool.end()
    assert.equal(rowCount, 0)
  })

  test('rejects a URL that refers to a missing certificate file', async () => {
    await assert.rejects(openStore(`${url}?sslmode=verify-ca&sslrootcert=/nowhere`), { code: 'ENOENT' })
  })

  test('retries the connection with exponential backoff until close() is called', async () => {
    await proxy.close()
    const timersBefore = countTimers()
    const { store, events } = await openStore(url)
    const startedAt = performance.now()
    await assert.rejects(async () => store.ping?.(), StoreUnavailableError)
    const { message, cause } = await captureUnavailable((async () => store.list('ann', { limit: 1, maxBytes: 1 }))())
    assert.equal(message, 'The database has not been available since startup.')
    assert.match(String((cause as Error).cause), /ECONNREFUSED/)
    await waitUntil(() => events.length === 3)
    assert.ok(performance.now() - startedAt >= 1490)
    await store.close?.()
    assert.equal(countTimers(), timersBefore)
    await proxy.open()
    assert.deepEqual(new Set(events), new Set(['unreachable']))
  })
})

test('the standalone server can start before its database server', async (t) => {
  const { proxy, url } = await openProxiedDatabase(t)
  await proxy.close()
  const program = await startProgram(t, { PLANT_STORE_URL: url })
  assert.equal((await program.fetch('/livez')).status, 200)
  assert.equal((await program.fetch('/readyz')).status, 503)
  const message = 'The store is temporarily unavailable. The request had no effect; try again.'
  assert.deepEqual(await createPlant(program), [503, { error: 50300, message }])
  assert.equal((await program.fetch('/plants')).status, 503)
  assert.equal((await program.fetch('/plants/1', { method: 'DELETE' })).status, 503)
  assert.match(String((await program.waitForLogEvent('unreachable'))['reason']), /ECONNREFUSED/)
  await program.waitForLogEvent('unready')
  await proxy.open()
  await program.waitUntilReady()
  await program.waitForLogEvent('ready')
  assert.deepEqual(await createPlant(program), CREATED)
})

for (const takeAway of ['close', 'block'] as const) {
  test(`the standalone server exits with status 0 on SIGTERM while its database server is ${takeAway === 'close' ? 'unreachable' : 'unresponsive'}`, async (t) => {
    const { proxy, url } = await openProxiedDatabase(t)
    const program = await startProgram(t, { PLANT_STORE_URL: url, PLANT_STORE_STORE_TIMEOUT_MS: '1000' })
    await proxy[takeAway]()
    assert.equal((await createPlant(program))[0], 503)
    program.child.kill('SIGTERM')
    assert.equal(await program.exited, 0)
  })
}

test('the standalone server exits with status 2 if the table is missing and PLANT_STORE_MIGRATE=0', async (t) => {
  const { database, url } = await openProxiedDatabase(t)
  const environment = { PLANT_STORE_URL: url, PLANT_STORE_MIGRATE: '0' }
  const refused = new Program({ PORT: '0', ...environment })
  assert.equal(await refused.exited, 2)
  const said = refused.stderr.lines.join('\n')
  assert.match(said, /^plant-store: .* PLANT_STORE_URL: the table plant_store_plants does not exist [^\n]*$/)
  await database.openPool().query(schema)
  const program = await startProgram(t, environment)
  assert.deepEqual(await createPlant(program), CREATED)
})

/** Starts a program whose role has only the given privileges on the existing table. */
async function startWithRights(t: TestContext, rights: string) {
  const { database, url } = await openProxiedDatabase(t)
  const role = `${database.config.database}_clerk`
  assert.equal(await new Program({ PLANT_STORE_URL: url }, ['--migrate']).exited, 0)
  await database.openPool().query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'p@ss#w0rd'; REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO ${role}; GRANT ${rights} ON plant_store_plants TO ${role}`,
  )
  t.after(() => runAdminSql(`DROP ROLE ${role}`))
  return startProgram(t, { PLANT_STORE_URL: url.replace(/\/\/[^@]*@/, `//${role}:p%40ss%23w0rd@`) })
}

test(
  'the standalone server needs only the privileges SELECT, INSERT and DELETE if the table exists',
  { skip: skipWithoutPostgres },
  async (t) => {
    const program = await startWithRights(t, 'SELECT, INSERT, DELETE')
    assert.deepEqual(await createPlant(program), CREATED)
    assert.equal(await (await program.fetch('/plants')).text(), '[{"name":"Fern"}]')
    assert.equal((await program.fetch('/plants/1', { method: 'DELETE' })).status, 204)
    assert.equal((await program.fetch('/readyz')).status, 200)
  },
)

for (const rights of ['SELECT, INSERT', 'SELECT, DELETE, INSERT (owner, id, name)']) {
  test(`the standalone server is unready if its role has only ${rights}`, { skip: skipWithoutPostgres }, async (t) => {
    const program = await startWithRights(t, rights)
    assert.match(String((await program.waitForLogEvent('unreachable'))['reason']), /permission denied for table/)
    assert.equal((await program.fetch('/readyz')).status, 503)
  })
}

for (const setting of ['server_encoding', 'client_encoding']) {
  test(`the standalone server exits with status 2 if the ${setting} is not UTF-8`, async (t) => {
    const { database, url } = await openProxiedDatabase(t)
    // The driver requests UTF-8, but a proxy between it and the server could change the encoding. A replaced server
    // function simulates this here.
    await database.openPool().query(
      `SET allow_system_table_mods = on;
      CREATE OR REPLACE FUNCTION pg_catalog.current_setting(text) RETURNS text LANGUAGE sql STABLE AS
        $$ SELECT CASE $1 WHEN '${setting}' THEN 'LATIN1' ELSE pg_catalog.current_setting($1, false) END $$`,
    )
    const program = new Program({ PORT: '0', PLANT_STORE_URL: url })
    const problem = `The ${setting} is LATIN1, but must be UTF8.`
    const line = `plant-store: cannot open the store at PLANT_STORE_URL: ${problem}`
    assert.deepEqual([await program.exited, program.stdout.lines, program.stderr.lines], [2, [], [line]])
  })
}

suite('the standalone server with a PostgreSQL server', { skip: skipWithoutDebianServers }, () => {
  test('connects over a Unix socket or TLS with the same URL parameters as libpq', async (t) => {
    const tls = ['ssl=on', `ssl_cert_file='localhost.crt'`, `ssl_key_file='localhost.key'`]
    const server = await PostgresServer.start(t, tls)
    for (const [id, url, address] of [
      [1, `postgres://plants:secret@/postgres?host=${server.folder}&port=${server.port}`, null],
      [2, `${server.url}?sslmode=require`, '127.0.0.1'],
    ] as const) {
      const program = await startProgram(t, { PLANT_STORE_URL: `${url}&application_name=${id}` })
      assert.deepEqual(await createPlant(program, id), CREATED)
      const session = `SELECT ssl, host(client_addr) AS address FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = '${id}' LIMIT 1`
      assert.deepEqual(await server.query(session), [{ ssl: id === 2, address }])
      const events = program.stderr.lines.map((line) => (JSON.parse(line) as { event: string }).event)
      assert.deepEqual(events, ['start'])
    }
  })

  test('the standalone server uses a new database password after SIGHUP', async (t) => {
    const server = await PostgresServer.start(t)
    writeFileSync(
      join(server.data, 'pg_hba.conf'),
      'host all clerk 127.0.0.1/32 scram-sha-256\nhost all plants 127.0.0.1/32 trust\n',
    )
    await server.query(`CREATE ROLE clerk SUPERUSER LOGIN PASSWORD 'old'`)
    await server.runPgCtl('reload')
    const urlWith = (password: string) => server.url.replace('plants@', `clerk:${password}@`)
    const file = createTempFile(t, urlWith('old'))
    const program = await startProgram(t, { PLANT_STORE_URL_FILE: file })
    await program.waitUntilReady()

    await server.query(`ALTER ROLE clerk PASSWORD 'n/w'`)
    await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'clerk'`)
    await server.waitForRows(`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE usename = 'clerk')`)
    while ((await program.fetch('/readyz')).status !== 503) await sleep(20)

    writeFileSync(file, urlWith('n/w'))
    program.child.kill('SIGHUP')
    const { reason } = await program.waitForLogEvent('store-url-kept')
    assert.match(String(reason), /^PLANT_STORE_URL_FILE takes|^use the form postgres/)
    writeFileSync(file, urlWith('n%2Fw'))
    program.child.kill('SIGHUP')
    assert.equal((await program.waitForLogEvent('store-url-read'))['changed'], true)
    await program.waitUntilReady()
    assert.deepEqual(await createPlant(program), CREATED)
  })

  test('the standalone server is unready on a standby until the standby is promoted', async (t) => {
    const standby = await PostgresServer.startStandby(t, await PostgresServer.start(t), 'standby')
    const program = await startProgram(t, { PLANT_STORE_URL: standby.url })
    assert.equal((await createPlant(program))[0], 503)
    assert.equal((await program.fetch('/readyz')).status, 503)
    assert.match(String((await program.waitForLogEvent('unreachable'))['reason']), /The server is read-only/)
    await standby.runPgCtl('promote', '--wait')
    await program.waitUntilReady()
    assert.deepEqual(await createPlant(program), CREATED)
  })
})
