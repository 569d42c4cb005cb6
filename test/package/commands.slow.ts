/** Runs the commands, configurations and clients of docs/clients.md and of the pages for operators. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { digestToken } from '../../src/http/authentication.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { openDatabase, skipWithoutPostgres } from '../support/postgres-database.ts'
import { getCode } from '../support/documents.ts'
import { createProject, runScript } from '../support/packed-package.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { createTempDirectory, createTempFile } from '../support/temp-files.ts'
import { getPort, servePlants } from '../support/service.ts'

test('the JavaScript client creates and lists a plant, or prints an error', async (t) => {
  const URL = `http://127.0.0.1:${getPort(await servePlants(t))}/`
  const project = await createProject(t, { 'main.mjs': getCode('docs/clients.md', 'js', 'JavaScript') })
  const printed = await runScript('node main.mjs && node main.mjs', project, { URL, TOKEN: 'ada' })
  const page = /\[ { id: 9007199254740993n, name: 'Fern' } \] \w+\n/.source
  assert.match(printed, new RegExp(`^${page}409 40900 false\n${page}$`))
})

test('the curl commands create plants and read all pages', { skip: skipWithoutCommand('curl') }, async (t) => {
  const folder = createTempDirectory(t)
  const env = { URL: `http://127.0.0.1:${getPort(await servePlants(t))}`, TOKEN: randomUUID() }
  const [create, read] = [0, 1].map((n) => getCode('docs/clients.md', 'sh', 'With curl', n))
  const printed = await runScript(`umask 000; echo old > token\n${create}${read}`, folder, env)
  assert.equal(printed, '{"name":"Fern"}{"name":"Moss"}[{"name":"Fern"}]\n[{"name":"Moss"}]\n')
  assert.equal(statSync(join(folder, 'token')).mode & 0o777, 0o600)
})

test('the commands in docs/configuration.md create a token and its digest', async () => {
  const [createToken, digest] = getCode('docs/configuration.md', 'sh').split('\n')
  const token = (await runScript(createToken!)).trim()
  const [sum] = (await runScript(digest!.replace('the token', token))).split(' ')
  assert.equal(Buffer.from(digestToken(token), 'latin1').toString('hex'), sum)
})

test('HAProxy accepts the configuration', { skip: skipWithoutCommand('haproxy') }, (t) => {
  const path = createTempFile(t, getCode('docs/deployment.md', 'haproxy'))
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-q', '-f', path], { encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
})

test('systemd accepts the units and their exposure', { skip: skipWithoutCommand('systemd-analyze') }, (t) => {
  const folder = createTempDirectory(t)
  const paths = ['plant-store.socket', 'plant-store.service'].map((name) => join(folder, name))
  for (const [n, path] of paths.entries()) {
    // The command must exist.
    const unit = getCode('docs/deployment.md', 'ini', 'systemd', n).replace('/usr/bin/node', process.execPath)
    writeFileSync(path, unit)
  }
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...paths], { encoding: 'utf8' })
  assert.doesNotMatch(stderr, /plant-store/)
  assert.equal(status, 0)
  const security = ['security', '--offline=true', '--threshold=30', '--no-pager', paths[1]!]
  assert.equal(spawnSync('systemd-analyze', security).status, 0)
})

const pgDump = { skip: skipWithoutPostgres || skipWithoutCommand('pg_dump') }

test('pg_dump and pg_restore back up and restore the table', pgDump, async (t) => {
  const database = await openDatabase(t)
  const store = postgresStore(database.openPool())
  await store.migrate()
  await store.create('ada', { id: 1n, name: 'Fern' })
  const folder = createTempDirectory(t)
  const run = (n: number) =>
    runScript(getCode('docs/postgres-high-availability.md', 'sh', 'Backup and restore', n), folder, {
      URL: database.url,
    })
  await run(0)
  assert.equal(statSync(join(folder, 'plants.dump')).mode & 0o777, 0o600)
  await store.delete('ada', 1n)
  await store.create('ada', { id: 2n, name: 'Moss' })
  await run(1)
  const { plants } = await store.list('ada', { limit: 10, maxBytes: 1000 })
  assert.deepEqual(
    plants.map(({ id }) => id),
    [1n],
  )
})
