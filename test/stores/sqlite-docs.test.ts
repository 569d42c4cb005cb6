// Runs the code blocks of docs/sqlite.md.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { MIGRATIONS } from '../../src/stores/sqlite/database-file.ts'
import { skipWithoutCommand, skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createDatabasePath, listIds, openSqliteStore, runInOtherProcess } from '../support/sqlite-file.ts'

const text = readFileSync(new URL('../../docs/sqlite.md', import.meta.url), 'utf8')
const [backup, restore, setNumbers] = Array.from(text.matchAll(/^```sh\n(.*?)^```$/gms), ([, code]) => code!)

/** Creates a file with two plants whose WAL remains, and runs a script in its directory. */
async function createFile(t: TestContext) {
  const path = createDatabasePath(t)
  const insert = "INSERT INTO plants (owner, id, name) VALUES ('ada', 1, 'Fern'), ('ada', 2, 'Aloe')"
  const stop = await runInOtherProcess(
    t,
    path,
    `PRAGMA journal_mode = WAL; ${MIGRATIONS.join(';')}; ${setPragmas}; ${insert}`,
  )
  const runScript = (script: string): string =>
    execFileSync('sh', ['-euc', script], { cwd: dirname(path), encoding: 'utf8', stdio: 'pipe' })
  return { path, stop, runScript }
}
const setPragmas = /'(PRAGMA .*)'/.exec(setNumbers!)![1]!

suite('docs/sqlite.md', { skip: skipWithoutSqlite || skipWithoutCommand('sqlite3') }, () => {
  test('Backup and Restore: the backup contains the plants in the WAL, and replaces later ones', async (t) => {
    const { path, stop, runScript } = await createFile(t)
    runScript(backup!)
    const later = openSqliteStore(t, {}, path).store
    await later.create('ada', { id: 3n, name: 'Later' })
    await later.close()
    await stop()
    assert.equal(runScript(restore!), 'ok\n')
    assert.deepEqual(await listIds(openSqliteStore(t, {}, path).store), [1n, 2n])
  })

  test('Backup: fails if the file is missing, and keeps the last backup', async (t) => {
    const { path, runScript } = await createFile(t)
    runScript(backup!)
    const before = readFileSync(`${dirname(path)}/backup.db`)
    assert.throws(() => runScript(backup!.replace('plants.db', 'missing.db')))
    assert.deepEqual(readFileSync(`${dirname(path)}/backup.db`), before)
  })

  test('Restore: a dump', async (t) => {
    const { path, runScript } = await createFile(t)
    runScript(`sqlite3 plants.db .dump | sqlite3 restored.db\n${setNumbers}`)
    assert.deepEqual(await listIds(openSqliteStore(t, {}, `${dirname(path)}/restored.db`).store), [1n, 2n])
  })

  test('Schema: shows the table that the store creates', () => {
    const [, sql] = /^```sql\n(.*?)^```$/ms.exec(text)!
    const collapse = (code: string): string => code.replace(/\s+/g, ' ').trim()
    assert.equal(collapse(sql!), collapse(MIGRATIONS.join('; ')))
  })
})
