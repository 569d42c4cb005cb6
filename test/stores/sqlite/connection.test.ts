import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { SqliteConnection } from '../../../src/stores/sqlite/connection.ts'
import { LOCKED } from '../../../src/stores/sqlite/errors.ts'
import { LARGE_LOG_BYTES } from '../../../src/stores/sqlite/log-keeper.ts'
import { newPath, open, skip } from '../../support/sqlite-file.ts'
import { until } from '../../support/until.ts'

/** Something that is no log, but as large as a large one. */
function makeLargeFile(path: string): void {
  writeFileSync(path, '')
  truncateSync(path, LARGE_LOG_BYTES + 1)
}

/** A connection to a new file that has a large log. */
function openWithLargeLog(t: TestContext): SqliteConnection {
  const path = newPath(t)
  const connection = new SqliteConnection(path, 0)
  t.after(() => connection.close())
  makeLargeFile(`${path}-wal`)
  return connection
}

/** Whether a thread is started for a large log at this path that is there from the start. */
async function startsThread(t: TestContext, path: string): Promise<boolean> {
  makeLargeFile(path)
  let isStarted = false
  const listener = (): void => {
    isStarted = true
  }
  process.on('worker', listener)
  t.after(() => process.off('worker', listener))
  // It is looked at in the same turn as this timer is due.
  const turn = new Promise((resolve) => setTimeout(resolve, 0))
  for (const end = performance.now() + 5; performance.now() < end;);
  await turn
  await until(() => !process.getActiveResourcesInfo().includes('FSReqPromise'))
  await setImmediate()
  return isStarted
}

test('does what found the file locked once it is free', { skip }, async (t) => {
  const path = newPath(t)
  const connection = new SqliteConnection(path, 10_000)
  t.after(() => connection.close())
  const [writer, other] = [open(t, path), open(t, path)]

  writer.exec('BEGIN IMMEDIATE')
  let tries = 0
  const free = connection.whenFree(() => {
    tries++
    other.exec('BEGIN IMMEDIATE')
  })
  while (tries < 2) await setImmediate()
  writer.exec('COMMIT')
  await free
  assert.ok(tries > 2)
})

test('refuses what finds the file locked until its time is over', { skip }, async (t) => {
  const path = newPath(t)
  const connection = new SqliteConnection(path, 50)
  t.after(() => connection.close())
  open(t, path).exec('BEGIN IMMEDIATE')
  const other = open(t, path, { timeout: 0 })
  const startedAt = performance.now()
  await assert.rejects(
    connection.whenFree(() => other.exec('BEGIN IMMEDIATE')),
    StoreUnavailableError,
  )
  assert.ok(performance.now() - startedAt >= 50)
})

test('closes a file that it refuses', { skip }, async (t) => {
  const path = newPath(t)
  const connection = new SqliteConnection(path, 0)
  connection.prepare('PRAGMA user_version = 2').run()
  await connection.close()
  assert.throws(() => new SqliteConnection(path, 0), /its schema has version 2/)
  // The last connection that is closed removes the log.
  assert.equal(existsSync(`${path}-wal`), false)
})

test('has commits empty the log, but not while a thread does', { skip }, async (t) => {
  const connection = openWithLargeLog(t)
  const pages = (): unknown => Object.values(connection.prepare('PRAGMA wal_autocheckpoint').all()[0] as object)[0]
  const [thread] = (await once(process, 'worker')) as [Worker]
  assert.equal(pages(), 0n)
  await once(thread, 'exit')
  await until(() => pages() !== 0n)
  assert.equal(pages(), 1000n)
})

test('begins no transaction from when on the thread may cut the log', { skip }, async (t) => {
  const connection = openWithLargeLog(t)
  const [thread] = (await once(process, 'worker')) as [Worker]
  await once(thread, 'message')
  assert.throws(
    () => connection.transaction(() => undefined),
    (error) => error === LOCKED,
  )
})

for (const [name, isHanded] of [
  ['a path', false],
  ['a database that it was handed', true],
] as const) {
  test(`keeps the log of ${name}: ${!isHanded}`, { skip }, async (t) => {
    const path = newPath(t)
    const handle = open(t, path)
    const connection = new SqliteConnection(isHanded ? handle : path, 0)
    t.after(() => connection.close())
    assert.equal(await startsThread(t, `${path}-wal`), !isHanded)
  })
}

test('keeps no log of a database in memory, whatever there is in the folder of the process', { skip }, async (t) => {
  const folder = dirname(newPath(t))
  const before = process.cwd()
  process.chdir(folder)
  t.after(() => process.chdir(before))
  const connection = new SqliteConnection(':memory:', 0)
  t.after(() => connection.close())
  assert.equal(await startsThread(t, join(folder, '-wal')), false)
})
