import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { SqliteConnection } from '../../../src/stores/sqlite/connection.ts'
import { until } from '../../support/until.ts'
import { connectionOptions, newPath, open, skip } from '../../support/database/sqlite-file.ts'

test('does what found the file locked once it is free', { skip }, async (t) => {
  const path = newPath(t)
  const connection = new SqliteConnection(path, connectionOptions(10_000))
  t.after(() => connection.close())
  const [writer, other] = [open(t, path), open(t, path)]

  writer.exec('BEGIN IMMEDIATE')
  let tries = 0
  const free = connection.whenFree(() => {
    tries++
    other.exec('BEGIN IMMEDIATE')
  })
  await until(() => tries >= 2)
  writer.exec('COMMIT')
  await free
  assert.ok(tries > 2)
})

test('closes a file that it refuses', { skip }, (t) => {
  const path = newPath(t)
  const connection = new SqliteConnection(path, connectionOptions(0))
  connection.prepare('PRAGMA user_version = 2').run()
  connection.close()
  assert.throws(() => new SqliteConnection(path, connectionOptions(0)), /its schema has version 2/)
  // The last connection that is closed removes the log.
  assert.equal(existsSync(`${path}-wal`), false)
})
