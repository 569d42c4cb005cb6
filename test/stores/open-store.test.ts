import assert from 'node:assert/strict'
import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { isStoreUrl, STORE_SCHEMES } from '../../src/stores/open-store.ts'
import { openProxiedDatabase } from '../support/database/postgres-database.ts'
import { waitForSeries, startWithMetrics } from '../support/program/metrics.ts'
import { createImportFlags, Program, startProgram } from '../support/program/program.ts'
import { lockFromOtherProcess } from '../support/database/sqlite-file.ts'
import { skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createTempDirectory, createTempFile } from '../support/temp-files.ts'

for (const url of ['memory:', 'sqlite:a', 'sqlite:/a/b.db', 'postgres://a', 'postgresql://ada:p@host:1/plants']) {
  test(`accepts the store URL ${url}`, () => assert.equal(isStoreUrl(url), true))
}

const INVALID_MEMORY_URLS = ['', 'memory', 'memory:a', 'memory:memory:']
const INVALID_SQLITE_URLS = ['sqlite:', ' sqlite:a', '"sqlite:a"', 'sqlite://a', 'sqlite://a/sqlite:b', 'a:sqlite:b']
const INVALID_POSTGRES_URLS = ['postgres:', 'postgres://', 'postgres:a', 'postgres:a/postgres://b', 'mysql://a']
for (const url of [...INVALID_MEMORY_URLS, ...INVALID_SQLITE_URLS, ...INVALID_POSTGRES_URLS]) {
  test(`rejects the store URL "${url}"`, () => assert.equal(isStoreUrl(url), false))
}

async function getStartError(url: string, status: 1 | 2, nodeArgs: readonly string[] = [], environment = {}) {
  const program = new Program({ PLANT_STORE_URL: url, PORT: '0', ...environment }, [], nodeArgs)
  assert.deepEqual([await program.exited, program.stdout.lines, program.stderr.lines.length], [status, [], 1])
  const said = /^plant-store: cannot open the store at PLANT_STORE_URL: (.*)$/
  return said.exec(program.stderr.lines[0]!)![1]!
}

test('the error names PLANT_STORE_URL_FILE if the store in that file cannot be opened', async (t) => {
  const program = new Program({ PLANT_STORE_URL_FILE: createTempFile(t, 'sqlite:/nowhere/plants.db\n'), PORT: '0' })
  assert.equal(await program.exited, 2)
  const [line, ...others] = program.stderr.lines
  assert.match(line!, /^plant-store: cannot open the store at PLANT_STORE_URL_FILE: SQLite /)
  assert.deepEqual(others, [])
})

suite('PLANT_STORE_URL=sqlite:…', { skip: skipWithoutSqlite }, () => {
  test('exits with status 2 if the file is missing and PLANT_STORE_MIGRATE=0', async (t) => {
    const path = join(createTempDirectory(t), 'plants.db')
    const reason = await getStartError(`sqlite:${path}`, 2, [], { PLANT_STORE_MIGRATE: '0' })
    assert.equal(reason, `SQLite database ${path}: the file does not exist and migrations are disabled`)
    assert.equal(existsSync(path), false)
  })

  test('the standalone server is not ready while its database file is moved away', async (t) => {
    const path = join(createTempDirectory(t), 'plants.db')
    const { program, admin } = await startWithMetrics(t, { PLANT_STORE_URL: `sqlite:${path}` })
    assert.equal((await program.waitForLogEvent('start'))['store'], 'sqlite')
    // Node 22 warns that SQLite is experimental.
    assert.ok(program.stderr.lines.every((line) => line.startsWith('{')))
    renameSync(path, `${path}.old`)
    assert.equal((await program.fetch('/readyz')).status, 503)
    const { status, headers } = await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
    assert.match(String((await program.waitForLogEvent('warning'))['reason']), /was moved, deleted or replaced/)
    renameSync(`${path}.old`, path)
    await program.waitUntilReady()
    const { reason } = await program.waitForLogEvent('warning', 2)
    assert.match(String(reason), /the database file, its WAL and its shared memory are back$/)
    assert.deepEqual(await waitForSeries(admin, /^plant_store_sqlite_log_bytes/, 1), ['plant_store_sqlite_log_bytes 0'])
  })

  test('responds with 50300 before the store timeout if the file is locked', async (t) => {
    const path = join(createTempDirectory(t), 'plants.db')
    const environment = { PLANT_STORE_URL: `sqlite:${path}`, PLANT_STORE_STORE_TIMEOUT_MS: '500' }
    const program = await startProgram(t, environment)
    await lockFromOtherProcess(t, path)
    const response = await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    assert.equal(((await response.json()) as { error: number }).error, 50300)
  })

  test('exits with status 1 if another process has locked the file', async (t) => {
    const path = join(createTempDirectory(t), 'plants.db')
    await lockFromOtherProcess(t, path)
    assert.match(await getStartError(`sqlite:${path}`, 1), /^SQLite database .*: database is locked$/)
  })

  for (const [path, reason] of [
    ["'plants.db", `SQLite path "'plants.db" begins or ends with white space, an invisible character or a quote`],
    ['plants.db?mode=ro', 'SQLite path "plants.db?mode=ro" contains "?"; only a file: URI can have parameters'],
  ] as const) {
    test(`rejects the path ${JSON.stringify(path)} with status 2`, async () => {
      assert.equal(await getStartError(`sqlite:${path}`, 2), reason)
    })
  }

  test('logs a single warning about a database file that other users can read (insecure permissions)', async (t) => {
    const path = join(createTempDirectory(t), 'plants.db')
    writeFileSync(path, '', { mode: 0o600 })
    chmodSync(path, 0o604)
    const program = await startProgram(t, { PLANT_STORE_URL: `sqlite:${path}` })
    const { reason } = await program.waitForLogEvent('warning')
    assert.equal(reason, `SQLite database ${path}: other users can read ${path} (mode 604)`)
  })

  test('exits with status 2 if the file is not a database', async (t) => {
    const message = await getStartError(`sqlite:${createTempFile(t, 'x'.repeat(1000))}`, 2)
    assert.match(message, /^SQLite database .*: file is not a database$/)
  })
})

test('the error explains that SQLite needs Node 22.13 if node:sqlite is missing', async () => {
  const nodeArgs = isBuiltin('node:sqlite') ? ['--no-experimental-sqlite'] : []
  assert.equal(await getStartError('sqlite:plants.db', 2, nodeArgs), 'SQLite needs Node 22.13 or later')
  const program = new Program({ PLANT_STORE_URL: 'plants.db' }, [], nodeArgs)
  assert.equal(await program.exited, 2)
  const examples = STORE_SCHEMES.map(({ example }) => example)
  const urls = examples.filter((example) => !example.startsWith('sqlite:')).join(' or ')
  assert.deepEqual(program.stderr.lines, [`plant-store: PLANT_STORE_URL must be a URL such as ${urls}`])
})

suite('PLANT_STORE_URL=postgres:…', () => {
  test('the standalone server is not ready while its database server is unreachable', async (t) => {
    const { proxy, url } = await openProxiedDatabase(t)
    const program = await startProgram(t, { PLANT_STORE_URL: url })
    assert.equal((await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })).status, 200)
    assert.equal(await (await program.fetch('/plants')).text(), '[{"name":"Fern"}]')
    assert.equal((await program.fetch('/readyz')).status, 200)

    await proxy.close()
    await program.waitForLogEvent('disconnected')
    while ((await program.fetch('/readyz')).status !== 503);
    const list = await program.fetch('/plants?limit=1234567')
    assert.deepEqual([list.status, ((await list.json()) as { error: number }).error], [503, 50300])
    const { reason } = await program.waitForLogEvent('failure')
    assert.match(String(reason), /^StoreUnavailableError: [^]*ECONNREFUSED/)
    assert.doesNotMatch(program.stderr.lines.join('\n'), /1234567/)

    program.child.kill('SIGTERM')
    assert.equal(await program.exited, 0)
  })

  test('exits with status 2 if the URL is malformed, without quoting the URL', async () => {
    assert.equal(
      await getStartError('postgres://ada:p@ss#w0rd@127.0.0.1:1/plants', 2),
      'use the form postgres://user:password@host/database; in a password, write @ / ? # and % as %40 %2F %3F %23 and %25',
    )
  })

  test('loads the driver from the working directory if it cannot be resolved from the package', async (t) => {
    const hideFromPackage = `
      import Module from 'node:module'
      const resolve = Module._resolveFilename
      Module._resolveFilename = function (name, parent, ...rest) {
        if (name === 'pg' && !parent.filename.endsWith('package.json')) {
          throw Object.assign(new Error('hidden'), { code: 'MODULE_NOT_FOUND' })
        }
        return resolve.call(this, name, parent, ...rest)
      }`
    const { url } = await openProxiedDatabase(t)
    const program = new Program({ PLANT_STORE_URL: url }, ['--migrate'], createImportFlags(hideFromPackage))
    assert.deepEqual([await program.exited, program.stderr.lines], [0, []])
  })

  test('exits with status 2 if the driver is not installed', async () => {
    const hideDriver = `
      import Module from 'node:module'
      const resolve = Module._resolveFilename
      Module._resolveFilename = function (name, ...rest) {
        if (name === 'pg') throw new Error('there is no pg')
        return resolve.call(this, name, ...rest)
      }`
    const reason = await getStartError('postgres://ada@127.0.0.1/plants', 2, createImportFlags(hideDriver))
    assert.equal(reason, 'cannot load the pg driver (npm install pg): there is no pg')
  })

  test('exits with status 2 if the driver is too old', async (t) => {
    const driver = 'exports.Client = class { connection = { stream: {} } }'
    const replaceDriver = `
      import Module from 'node:module'
      const resolve = Module._resolveFilename
      Module._resolveFilename = function (name, ...rest) {
        return name === 'pg' ? '${createTempFile(t, driver, 'pg.cjs')}' : resolve.call(this, name, ...rest)
      }`
    const reason = await getStartError('postgres://ada@127.0.0.1/plants', 2, createImportFlags(replaceDriver))
    assert.equal(reason, 'the pg driver is too old; install version 8.16 or later (npm install pg@8)')
  })
})
