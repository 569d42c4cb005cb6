import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { SqliteConnection } from '../../../src/stores/sqlite/connection.ts'
import { connectionOptions, newPath, skip } from '../../support/database/sqlite-file.ts'

test('closes a file that it refuses', { skip }, (t) => {
  const path = newPath(t)
  const connection = new SqliteConnection(path, connectionOptions(0))
  connection.prepare('PRAGMA user_version = 2').run()
  connection.close()
  assert.throws(() => new SqliteConnection(path, connectionOptions(0)), /its schema has version 2/)
  // The last connection that is closed removes the log.
  assert.equal(existsSync(`${path}-wal`), false)
})
