import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { keptIds } from '../../support/wire/service.ts'
import { newPath, open, openStore, skip } from '../../support/database/sqlite-file.ts'

/** A file as a process leaves it that is killed: a plant is in its log alone. */
async function leave(t: TestContext): Promise<string> {
  const { path, store } = openStore(t)
  await store.create('ada', { id: 1n, name: 'Monstera' })
  const left = newPath(t)
  for (const part of ['', '-wal']) fs.copyFileSync(path + part, left + part)
  return left
}

test('opens a file with its log', { skip }, async (t) => {
  const { store } = openStore(t, {}, await leave(t))
  assert.deepEqual(await keptIds(store), [1n])
})

const needsPermissions = Number.parseInt(process.versions.node) < 24 && 'Node 24 has permissions'

test('makes no file if Node may not write it, and says so', { skip: needsPermissions }, (t) => {
  const path = newPath(t)
  const code = `import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'; sqliteStore('${path}')`
  const writable = `--allow-fs-write=${process.env['NODE_V8_COVERAGE'] ?? '/dev/null'}`
  const args = ['--permission', '--allow-fs-read=*', writable, '--input-type=module', '--eval', code]
  const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.match(stderr, /Error: SQLite database .*plants\.db: Access .* restricted\. Use --allow-fs-write /)
  assert.equal(fs.existsSync(path), false)
})

suite('refuses a log, which SQLite would remove,', { skip }, () => {
  for (const [name, spoil] of [
    ['whose file is missing', (path: string) => fs.rmSync(path)],
    ['whose file is empty', (path: string) => fs.writeFileSync(path, '')],
  ] as const) {
    test(`${name}, and leaves both as they are`, async (t) => {
      const path = await leave(t)
      spoil(path)
      const contentOf = (): unknown[] =>
        [path, `${path}-wal`].map((name) => (fs.existsSync(name) ? fs.readFileSync(name) : 'none'))
      const before = contentOf()
      const reason = 'its log (-wal) may hold plants, but the file is missing or empty; SQLite would remove the log'
      const error = { name: 'Error', message: `SQLite database ${path}: ${reason}` }
      assert.throws(() => sqliteStore(path), error)
      assert.deepEqual(contentOf(), before)
      assert.throws(() => sqliteStore(open(t, path)), error)
      assert.deepEqual(contentOf()[1], before[1])
    })
  }

  test('also through a symbolic link', async (t) => {
    const path = await leave(t)
    fs.rmSync(path)
    const link = newPath(t)
    fs.symlinkSync(path, link)
    assert.throws(() => sqliteStore(link), /its log \(-wal\) may hold plants/)
    assert.equal(fs.existsSync(`${path}-wal`), true)
  })
})

test('opens an empty file with an empty log', { skip }, async (t) => {
  const path = newPath(t)
  for (const part of ['', '-wal']) fs.writeFileSync(path + part, '')
  assert.deepEqual(await keptIds(openStore(t, {}, path).store), [])
})

test('makes a file that only its user may read, and keeps the modes of one that is there', { skip }, async (t) => {
  const umask = process.umask(0)
  t.after(() => process.umask(umask))
  const { path, store } = openStore(t)
  const modes = () => ['', '-wal', '-shm'].map((part) => (fs.statSync(path + part).mode & 0o777).toString(8))
  assert.deepEqual(modes(), ['600', '600', '600'])
  await store.close()
  fs.chmodSync(path, 0o640)
  openStore(t, {}, path)
  assert.deepEqual(modes(), ['640', '640', '640'])
})

test('takes no log for that of a database in memory', { skip }, async (t) => {
  const path = await leave(t)
  const before = process.cwd()
  t.after(() => process.chdir(before))
  process.chdir(dirname(path))
  fs.copyFileSync(`${path}-wal`, join(dirname(path), '-wal'))
  const { store } = openStore(t, {}, ':memory:')
  assert.deepEqual(await keptIds(store), [])
})
