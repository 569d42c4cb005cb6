import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { SqliteConnection } from '../../../src/stores/sqlite/connection.ts'

const skip = !isBuiltin('node:sqlite') && 'this Node has no node:sqlite'

test('does what found the file locked once it is free', { skip }, async (t) => {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'plants.db')
  const connection = new SqliteConnection(path, 10_000)
  const [writer, other] = [new DatabaseSync(path), new DatabaseSync(path)]
  t.after(async () => {
    await connection.close()
    for (const handle of [writer, other]) handle.close()
  })

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
