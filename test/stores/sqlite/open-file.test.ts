import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
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
  for (const part of ['', '-wal']) copyFileSync(path + part, left + part)
  return left
}

test('opens a file with its log', { skip }, async (t) => {
  const { store } = openStore(t, {}, await leave(t))
  assert.deepEqual(await keptIds(store), [1n])
})

test(
  'makes no file if Node may not write it, and says so',
  { skip: Number.parseInt(process.versions.node) < 24 && 'Node 24 has permissions' },
  (t) => {
    const path = newPath(t)
    const module = new URL('../../../src/stores/sqlite/sqlite-store.ts', import.meta.url).href
    const code = `import { sqliteStore } from '${module}'; sqliteStore('${path}')`
    const flags = [
      '--permission',
      '--allow-fs-read=*',
      `--allow-fs-write=${process.env['NODE_V8_COVERAGE'] ?? '/dev/null'}`,
    ]
    const { stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', code], {
      encoding: 'utf8',
    })
    assert.match(stderr, /Error: SQLite database .*plants\.db: Access .* restricted\. Use --allow-fs-write /)
    assert.equal(existsSync(path), false)
  },
)

suite('refuses a log, which SQLite would remove,', { skip }, () => {
  for (const [name, spoil] of [
    ['whose file is missing', (path: string) => rmSync(path)],
    ['whose file is empty', (path: string) => writeFileSync(path, '')],
  ] as const) {
    test(`${name}, and leaves both as they are`, async (t) => {
      const path = await leave(t)
      spoil(path)
      const contentOf = (): unknown[] =>
        [path, `${path}-wal`].map((name) => (existsSync(name) ? readFileSync(name) : 'none'))
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
    rmSync(path)
    const link = newPath(t)
    symlinkSync(path, link)
    assert.throws(() => sqliteStore(link), /its log \(-wal\) may hold plants/)
    assert.equal(existsSync(`${path}-wal`), true)
  })
})

test('opens an empty file with an empty log', { skip }, async (t) => {
  const path = newPath(t)
  for (const part of ['', '-wal']) writeFileSync(path + part, '')
  assert.deepEqual(await keptIds(openStore(t, {}, path).store), [])
})

/** The permissions of a file, its log and its shared memory. */
function modesOf(path: string): string[] {
  return ['', '-wal', '-shm'].map((part) => (statSync(path + part).mode & 0o777).toString(8))
}

test(
  'makes a file that only its user may read, and leaves the permissions of one that is there',
  { skip },
  async (t) => {
    const umask = process.umask(0)
    t.after(() => process.umask(umask))
    const { path, store } = openStore(t)
    assert.deepEqual(modesOf(path), ['600', '600', '600'])
    await store.close()
    chmodSync(path, 0o640)
    openStore(t, {}, path)
    assert.deepEqual(modesOf(path), ['640', '640', '640'])
  },
)

test('takes no log for that of a database in memory', { skip }, async (t) => {
  const path = await leave(t)
  const before = process.cwd()
  t.after(() => process.chdir(before))
  process.chdir(dirname(path))
  copyFileSync(`${path}-wal`, join(dirname(path), '-wal'))
  const { store } = openStore(t, {}, ':memory:')
  assert.deepEqual(await keptIds(store), [])
})
