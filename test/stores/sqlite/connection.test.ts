import assert from 'node:assert/strict'
import { truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { SqliteConnection } from '../../../src/stores/sqlite/connection.ts'
import { LARGE_LOG_BYTES } from '../../../src/stores/sqlite/log-keeper.ts'
import { newPath, open, skip } from '../../support/sqlite-file.ts'
import { until } from '../../support/until.ts'

/** Whether a thread is started for a large log at this path that is there from the start. */
async function startsThread(t: TestContext, path: string): Promise<boolean> {
  writeFileSync(path, '')
  truncateSync(path, LARGE_LOG_BYTES + 1)
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
