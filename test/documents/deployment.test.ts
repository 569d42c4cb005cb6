import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { EDGE_CASE_TEXTS } from '../../src/conformance/edge-cases.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { startChild, waitForOutput } from '../support/child-process.ts'
import { skipWithoutPostgres, openDatabase } from '../support/database/postgres-database.ts'
import {
  postgresBin,
  createServerDirectory,
  skipWithoutDebianServers,
  PostgresServer,
  runCommand,
} from '../support/wire/debian-servers.ts'
import { getCode, readDocument } from '../support/package/documents.ts'
import { packPackage, runScript, ENV_WITHOUT_COVERAGE } from '../support/package/packed-package.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { skipBeforeNode, skipWithoutCommand, skipWithoutStrace } from '../support/skip-reasons.ts'
import { get, listStoredIds, post, sendToPort } from '../support/wire/service.ts'
import {
  createCorruptDatabase,
  createDatabasePath,
  skipWithoutSqlite as needsSqlite,
} from '../support/database/sqlite-file.ts'
import { createTempDirectory, createTempFile } from '../support/temp-files.ts'
import { waitUntil } from '../support/wait-until.ts'

const DEPLOYMENT_PATH = 'docs/deployment.md'
const UNIT = getCode(DEPLOYMENT_PATH, 'ini', undefined, 1)

test('a server started through node_modules/.bin exits with status 0 on SIGTERM', async (t) => {
  const { folder } = await packPackage()
  const env = { ...ENV_WITHOUT_COVERAGE, PORT: '0' }
  const child = startChild(t, join(folder, 'node_modules/.bin/plant-store'), [], { env })
  const exited = once(child, 'exit')
  await waitForOutput(child)
  child.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
})

test(
  'systemd-analyze accepts the units and their exposure level',
  { skip: skipWithoutCommand('systemd-analyze') },
  (t) => {
    const folder = createTempDirectory(t)
    const paths = ['plant-store.socket', 'plant-store.service'].map((name) => join(folder, name))
    writeFileSync(paths[0]!, getCode(DEPLOYMENT_PATH, 'ini'))
    // systemd-analyze requires that the command exists.
    writeFileSync(paths[1]!, UNIT.replace('/usr/bin/node', process.execPath))
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...paths], { encoding: 'utf8' })
    assert.doesNotMatch(stderr, /plant-store/)
    assert.equal(status, 0)
    const security = ['security', '--offline=true', '--threshold=30', '--no-pager', paths[1]!]
    assert.equal(spawnSync('systemd-analyze', security).status, 0)
  },
)

const NODE = Number.parseInt(process.versions.node)

test('the systemd unit grants every Node permission that the server needs', { skip: skipBeforeNode(24) }, async (t) => {
  const folder = createTempDirectory(t)
  cpSync(join((await packPackage()).folder, 'node_modules/plant-store'), folder, { recursive: true })
  writeFileSync(join(folder, 'tokens'), `ada:${TOKEN}\n`)
  const unit = UNIT.replaceAll(/\/(?:opt|etc|var\/lib)\/plant-store(?=\/)/g, folder)
  const [, ...args] = /^ExecStart=((?:.*\\\n)*.*)/m.exec(unit)![1]!.split(/\s+\\?\s*/)
  // The flags from the table of permissions.
  const [, flags] = /^\| .*Node 26.* \| `(.*)` \|$/m.exec(readDocument(DEPLOYMENT_PATH).text)!
  if (NODE >= 26) args.unshift(...flags!.split(' '))
  const settings = Array.from(unit.matchAll(/^Environment=(\w+)=(.*)$/gm), ([, name, value]) => [name!, value])
  const env = { ...(Object.fromEntries(settings) as NodeJS.ProcessEnv), PORT: '0' }
  const child = startChild(t, process.execPath, args, { env })
  const line = await waitForOutput(child)
  const port = Number(/:(\d+)\n/.exec(line)![1])
  assert.equal((await sendToPort(port, post(TOKEN, '{"id":1,"name":"Fern"}'))).status, 200)
  assert.equal((await sendToPort(port, get('', '/readyz'))).status, 200)
})

/** Lists the system calls of a systemd filter set. */
function listSystemCalls(set: string): string[] {
  const lines = execFileSync('systemd-analyze', ['syscall-filter', '--no-pager', set], { encoding: 'utf8' }).split('\n')
  const names = lines.map((line) => line.trim()).filter((line) => /^@?[\w-]+$/.test(line) && line !== set)
  return names.flatMap((name) => (name.startsWith('@') ? listSystemCalls(name) : name))
}

const traceOptions = { skip: skipWithoutStrace || skipWithoutCommand('systemd-analyze') }

test('the systemd unit allows every system call that the server makes', traceOptions, async (t) => {
  const file = createTempFile(t, '')
  const url = needsSqlite === false ? `sqlite:${createDatabasePath(t)}` : 'memory:'
  const shell = { prelude: `exec strace -D -f -qq -o ${file} "$@"` }
  const program = await startProgram(t, { PLANT_STORE_URL: url, PLANT_STORE_ADMIN_PORT: '0' }, shell)
  assert.equal((await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })).status, 200)
  program.child.kill('SIGTERM')
  assert.equal(await program.exited, 0)
  await waitUntil(() => readFileSync(file, 'utf8').includes('exit_group('))

  const calls = new Set(Array.from(readFileSync(file, 'utf8').matchAll(/^\d+ +(\w+)\(/gm), ([, name]) => name!))
  assert.ok(calls.size > 40)
  // Node 20 calls pkey_alloc, but works without it.
  calls.delete('pkey_alloc')
  for (const name of listSystemCalls(/SystemCallFilter=(.*)/.exec(UNIT)![1]!)) calls.delete(name)
  assert.deepEqual([...calls], [])
})

test('the commands in docs/configuration.md create a token and its digest', async (t) => {
  const [makeToken, digest] = getCode('docs/configuration.md', 'sh').split('\n')
  const token = (await runScript(makeToken!)).trim()
  const sum = await runScript(digest!.replace('the token', token))
  const program = await startProgram(t, { PLANT_STORE_TOKENS: `ada:sha256=${sum.split(' ', 1)[0]}` })
  assert.equal((await sendToPort(program.port, get(token))).status, 200)
})

test('the export command in docs/configuration.md sets the digest of a valid token', async (t) => {
  const set = getCode('docs/configuration.md', 'sh', 'Tokens', 1)
  const entry = (await runScript(`${set}\nprintenv PLANT_STORE_TOKENS`)).trim()
  const program = await startProgram(t, { PLANT_STORE_TOKENS: entry })
  assert.equal((await sendToPort(program.port, get('YWRh'))).status, 200)
})

const sqliteShellOptions = { skip: needsSqlite || skipWithoutCommand('sqlite3') }

test('the commands in docs/sqlite.md back up a database that is in use', sqliteShellOptions, async (t) => {
  const path = createDatabasePath(t)
  const store = sqliteStore(path)
  for (const id of [1n, 2n]) {
    await store.create('ada', { id, name: 'Fern' })
    await runScript(getCode('docs/sqlite.md', 'sh'), dirname(path))
  }
  await store.close()
  const backup = path.replace('plants.db', 'backup.db')
  assert.equal(statSync(backup).mode & 0o777, 0o600)
  const copy = sqliteStore(backup)
  assert.deepEqual(await listStoredIds(copy), [1n, 2n])
  await copy.close()
})

test(
  'the commands in docs/sqlite.md keep the last backup if the database is missing',
  sqliteShellOptions,
  async (t) => {
    const folder = createTempDirectory(t)
    const backup = join(folder, 'backup.db')
    writeFileSync(backup, 'the last backup')
    await assert.rejects(runScript(getCode('docs/sqlite.md', 'sh'), folder), /unable to open database/)
    assert.equal(readFileSync(backup, 'utf8'), 'the last backup')
  },
)

test('the commands in docs/sqlite.md fail if a dump is incomplete', sqliteShellOptions, async (t) => {
  const path = createDatabasePath(t)
  await createCorruptDatabase(path)
  await assert.rejects(runScript(getCode('docs/sqlite.md', 'sh', 'Restore a dump'), dirname(path)), /no such table/)
})

test('the commands in docs/sqlite.md restore a database from a dump', sqliteShellOptions, async (t) => {
  const path = createDatabasePath(t)
  const store = sqliteStore(path)
  await store.create('ada', { id: 1n, name: 'Fern' })
  await runScript(getCode('docs/sqlite.md', 'sh', 'Restore a dump'), dirname(path))
  await store.close()
  const restored = path.replace('plants.db', 'restored.db')
  assert.equal(statSync(restored).mode & 0o777, 0o600)
  const copy = sqliteStore(restored)
  assert.deepEqual(await listStoredIds(copy), [1n])
  await copy.close()
})

test('HAProxy accepts the configuration in docs/deployment.md', { skip: skipWithoutCommand('haproxy') }, (t) => {
  const path = createTempFile(t, getCode(DEPLOYMENT_PATH, 'haproxy'))
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-q', '-f', path], { encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
})

const HIGH_AVAILABILITY_PATH = 'docs/postgres-high-availability.md'
const ALL_PLANTS = { limit: 1000, maxBytes: 2 ** 30 }
const pgDumpOptions = { skip: skipWithoutPostgres || skipWithoutCommand('pg_dump') }

test('the commands in the Postgres documentation back up and restore a table', pgDumpOptions, async (t) => {
  const database = await openDatabase(t)
  const store = postgresStore(database.openPool())
  await store.migrate()
  for (const [i, name] of EDGE_CASE_TEXTS.entries()) await store.create('ada', { id: BigInt(i), name, tag: name })
  const before = await store.list('ada', ALL_PLANTS)
  const folder = createTempDirectory(t)
  const run = (n: number) =>
    runScript(getCode(HIGH_AVAILABILITY_PATH, 'sh', 'Backup and restore', n), folder, { URL: database.url })
  await run(0)
  assert.equal(statSync(join(folder, 'plants.dump')).mode & 0o777, 0o600)
  await store.delete('ada', 0n)
  await store.create('ada', { id: 1000n, name: 'Fern' })
  await run(1)
  assert.deepEqual(await store.list('ada', ALL_PLANTS), before)
  assert.equal(await store.create('ada', { id: 0n, name: 'Fern' }), false)
})

test(
  'the commands in the Postgres documentation restore a server to a point in time',
  { skip: skipWithoutDebianServers },
  async (t) => {
    const backup = createServerDirectory(t)
    const code = (language: string, n = 0) =>
      getCode(HIGH_AVAILABILITY_PATH, language, 'Point-in-time recovery', n).replaceAll('/backup', backup)
    await runCommand('mkdir', [join(backup, 'wal')], true)
    const server = await PostgresServer.start(t, code('ini').trim().split('\n'))
    const program = await startProgram(t, { PLANT_STORE_URL: server.url })
    async function create(id: number) {
      const { status } = await program.fetch('/plants', { method: 'POST', body: `{"id":${id},"name":"Plant ${id}"}` })
      assert.equal(status, 200)
    }
    const before = `export PATH=${postgresBin}:$PATH SERVER=${server.url} PGDATA=${server.data};`
    const run = (script: string) => runCommand('sh', ['-c', `${before} ${script}`], true)
    await create(1)
    await run(code('sh'))
    await create(2)
    const [row] = await server.query<{ now: string }>('SELECT now()::text AS now')
    await create(3)
    await server.query('SELECT pg_switch_wal()')
    await server.stop('fast')
    await run(`mv "$PGDATA" "$PGDATA.broken" && ${code('sh', 1).replace(/(?<=target_time = ').*?(?=')/, row!.now)}`)
    await server.launch()
    await program.waitUntilReady()
    assert.equal(await (await program.fetch('/plants')).text(), '[{"name":"Plant 1"},{"name":"Plant 2"}]')
  },
)
