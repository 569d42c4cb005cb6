import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { suite, test } from 'node:test'
import type { TestContext } from 'node:test'
import type { Store } from '../../../src/plants/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { keptIds } from '../../support/wire/service.ts'
import { newPath, open, openStore, skip } from '../../support/database/sqlite-file.ts'

const FRAME_BYTES = 24 + 4096

/** So large that it takes pages of its own. */
const LARGE = 'x'.repeat(10_000)

/** Creates plants in groups. */
async function fill(store: Store, from: number, to: number, name = LARGE): Promise<void> {
  for (let id = from; id < to; id += 100) {
    await Promise.all(Array.from({ length: 100 }, async (_, i) => store.create('ada', { id: BigInt(id + i), name })))
  }
}

/** A file as a process leaves it that is killed, with a log beside it; and a backup that was made before most of it. */
async function leave(
  t: TestContext,
  work: (store: Store, used: string) => Promise<void>,
): Promise<{ path: string; backup: string }> {
  const [used, path] = [newPath(t), newPath(t)]
  const backup = `${path}.backup`
  const store = sqliteStore(used)
  await fill(store, 0, 300, 'Fern')
  open(t, used).exec(`VACUUM INTO '${backup}'`)
  await work(store, used)
  for (const end of ['', '-wal']) copyFileSync(used + end, path + end)
  await store.close()
  return { path, backup }
}

const grow = (store: Store): Promise<void> => fill(store, 300, 1000)

/** The file that is at a path, and its log. */
function contentOf(path: string): Buffer[] {
  return [path, `${path}-wal`].map((name) => readFileSync(name))
}

function assertRefused(t: TestContext, path: string, reason: RegExp): void {
  const before = contentOf(path)
  const text = `^SQLite database ${path}: the log that was left beside it \\(-wal\\) is not its own, see "Restore" in docs/sqlite\\.md: `
  const message = new RegExp(text + reason.source)
  assert.throws(() => sqliteStore(path), { name: 'Error', message })
  assert.deepEqual(contentOf(path), before)
  assert.throws(() => sqliteStore(open(t, path)), { name: 'Error', message })
}

test('opens a file with its own log', { skip }, async (t) => {
  const { path } = await leave(t, grow)
  const { store } = openStore(t, {}, path)
  assert.equal((await keptIds(store)).length, 1000)
})

suite('refuses, and leaves as it is, a file with the log of another one', { skip }, () => {
  test('if pages are in neither', async (t) => {
    const { path, backup } = await leave(t, grow)
    copyFileSync(backup, path)
    assertRefused(t, path, /\d{3,} pages are in neither$/)
  })

  test('if all pages are there, and do not fit', async (t) => {
    const { path } = await leave(t, async (store) => {
      await grow(store)
      await Promise.all(Array.from({ length: 500 }, async (_, i) => store.delete('ada', BigInt(2 * i))))
    })
    const other = sqliteStore(`${path}.other`)
    await fill(other, 0, 1500)
    await other.close()
    copyFileSync(`${path}.other`, path)
    assertRefused(t, path, /\*\*\* in database main \*\*\* /)
  })

  test('if the file is empty', async (t) => {
    const { path } = await leave(t, grow)
    writeFileSync(path, '')
    assertRefused(t, path, /the file is missing or empty$/)
  })
})

test('does not remove a log whose file is missing', { skip }, async (t) => {
  const { path } = await leave(t, grow)
  rmSync(path)
  const log = readFileSync(`${path}-wal`)
  assert.throws(() => sqliteStore(path), { name: 'Error', message: /the file is missing or empty$/ })
  assert.deepEqual(readFileSync(`${path}-wal`), log)
})

test('reads no large file as a whole', { skip }, async (t) => {
  const { path } = await leave(t, grow)
  // What is behind the pages of a database is none of it, but quick_check would find it if it were.
  truncateSync(path, 65 * 2 ** 20)
  const { store } = openStore(t, {}, path)
  assert.equal((await keptIds(store)).length, 1000)
})

for (const [name, log] of [
  ['nothing', ''],
  ['something that is no log', 'Monstera'.repeat(10)],
  ['something that begins like a log', Buffer.from('377f0682'.repeat(20), 'hex')],
] as const) {
  test(`opens a file with ${name} in the place of its log`, { skip }, async (t) => {
    const path = newPath(t)
    await sqliteStore(path).close()
    writeFileSync(`${path}-wal`, log)
    const { store } = openStore(t, {}, path)
    assert.deepEqual(await keptIds(store), [])
  })
}

test('opens a file whose log ends in what is left of a commit that failed', { skip }, async (t) => {
  let bytes = 0
  const { path } = await leave(t, async (store, used) => {
    bytes = statSync(`${used}-wal`).size
    await fill(store, 300, 400)
  })
  const log = readFileSync(`${path}-wal`)
  // The next commit, which was cut too, has begun to write over it.
  for (let frame = 0; frame < 200; frame++) log.copy(log, bytes + frame * FRAME_BYTES, 32, 32 + FRAME_BYTES)
  writeFileSync(`${path}-wal`, log)
  const { store } = openStore(t, {}, path)
  assert.equal((await keptIds(store)).length, 300)
})

test('opens a file with a log in which nothing was committed', { skip }, async (t) => {
  const { path, backup } = await leave(t, grow)
  copyFileSync(backup, path)
  truncateSync(`${path}-wal`, 32)
  const { store } = openStore(t, {}, path)
  assert.equal((await keptIds(store)).length, 300)
})

test('takes no log for that of a database in memory', { skip }, async (t) => {
  const { path } = await leave(t, grow)
  const before = process.cwd()
  t.after(() => process.chdir(before))
  process.chdir(dirname(path))
  copyFileSync(`${path}-wal`, join(dirname(path), '-wal'))
  const store = sqliteStore(':memory:')
  assert.deepEqual(await keptIds(store), [])
  await store.close()
})
