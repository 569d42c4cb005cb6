import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { after, test } from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import type { Store } from '../../../src/plants/store.ts'
import { LARGE_LOG_BYTES, LogKeeper } from '../../../src/stores/sqlite/log-keeper.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import type { SqliteHandle } from '../../../src/stores/sqlite/sqlite-store.ts'
import { block } from '../../support/event-loop.ts'
import { newPath, open, readElsewhere, skip } from '../../support/sqlite-file.ts'
import { until } from '../../support/until.ts'

const LARGE = 'x'.repeat(60_000)
const PLANT = { id: -1n, name: 'Monstera' }

// A thread that empties a log keeps no process alive.
const alive = setInterval(() => undefined, 60_000)
after(() => clearInterval(alive))

function logBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
}

/** Writes so much that the log is large if nothing empties it. */
async function fillLog(path: string, store: Store): Promise<void> {
  for (let id = 0n; logBytes(path) <= LARGE_LOG_BYTES; id++) await store.create('ada', { id, name: LARGE })
}

/** A file with a large log, and what keeps it open. */
async function leaveLargeLog(t: TestContext, path: string): Promise<SqliteHandle> {
  const handle = open(t, path)
  const store = sqliteStore(handle)
  handle.exec('PRAGMA wal_autocheckpoint = 0')
  await fillLog(path, store)
  return handle
}

/** Something that no database has, but that is as large as a large log. */
function makeLargeFile(path: string, bytes = LARGE_LOG_BYTES + 1): void {
  writeFileSync(path, '')
  truncateSync(path, bytes)
}

/** The turn in which a keeper that was just made begins to look at its log. */
async function firstLook(): Promise<void> {
  // Both timers are due in the same turn.
  const turn = new Promise((resolve) => setTimeout(resolve, 0))
  for (const end = performance.now() + 5; performance.now() < end;);
  await turn
}

/** The next thread that this process starts. */
async function nextThread(): Promise<Worker> {
  const [thread] = (await once(process, 'worker')) as [Worker]
  return thread
}

/** A keeper of a file, and what it has asked of the commits. */
function newKeeper(t: TestContext, path: string): { keeper: LogKeeper; asked: boolean[] } {
  const asked: boolean[] = []
  const keeper = new LogKeeper(path, 'PRAGMA synchronous = FULL', (isOn) => asked.push(isOn))
  t.after(() => keeper.close())
  return { keeper, asked }
}

test('empties the log that has grown beside a reader once that has gone, without a commit', { skip }, async (t) => {
  const path = newPath(t)
  const store = sqliteStore(path)
  t.after(() => store.close())
  const letGo = await readElsewhere(t, path)
  const started = nextThread()
  await fillLog(path, store)
  const thread = await started
  const ended = once(thread, 'exit')
  await letGo()
  await ended
  assert.equal(logBytes(path), 0)
})

test('empties a large log beside writes, which wait while it is cut', { skip }, async (t) => {
  const path = newPath(t)
  const store = sqliteStore(path)
  t.after(() => store.close())
  const letGo = await readElsewhere(t, path)
  const started = nextThread()
  await fillLog(path, store)
  const thread = await started
  const events: string[] = []
  const ended = once(thread, 'exit').then(() => events.push(`exit, ${logBytes(path)}`))
  const created = once(thread, 'message').then(async ([message]) => {
    events.push(message as string)
    events.push(`created: ${await store.create('grace', PLANT)}`)
  })
  await letGo()
  await Promise.all([ended, created])
  assert.deepEqual(events, ['pause', 'exit, 0', 'created: true'])
})

test('empties a large log that another process has left', { skip }, async (t) => {
  const path = newPath(t)
  await leaveLargeLog(t, path)
  const started = nextThread()
  const store = sqliteStore(path)
  t.after(() => store.close())
  await once(await started, 'exit')
  assert.equal(logBytes(path), 0)
})

test('closes while a reader keeps a large log from being emptied', { skip }, async (t) => {
  const path = newPath(t)
  const store = sqliteStore(path)
  const letGo = await readElsewhere(t, path)
  const started = nextThread()
  await fillLog(path, store)
  await started
  await store.close()
  // The last connection that is closed removes the log.
  await letGo()
  assert.equal(existsSync(`${path}-wal`), false)
})

test('starts no thread once it is closed', { skip }, async (t) => {
  const path = newPath(t)
  makeLargeFile(`${path}-wal`)
  const { keeper, asked } = newKeeper(t, path)
  await firstLook()
  await keeper.close()
  assert.deepEqual(asked, [])
})

test('lets commits empty a log that is as large as SQLite leaves it', { skip }, async (t) => {
  const path = newPath(t)
  makeLargeFile(`${path}-wal`, LARGE_LOG_BYTES)
  const { asked } = newKeeper(t, path)
  await firstLook()
  await until(() => !process.getActiveResourcesInfo().includes('FSReqPromise'))
  assert.deepEqual(asked, [])
})

test('lets writes go on while a reader keeps it from cutting the log', { skip }, async (t) => {
  const path = newPath(t)
  await leaveLargeLog(t, path)
  const reader = open(t, path)
  reader.exec('BEGIN; SELECT count(*) FROM plants')
  const { keeper, asked } = newKeeper(t, path)
  await until(() => keeper.isPaused)
  await until(() => !keeper.isPaused)
  assert.deepEqual(asked, [false])
  assert.ok(logBytes(path) > LARGE_LOG_BYTES)
  reader.exec('COMMIT')
  await until(() => keeper.isPaused)
  await until(() => !keeper.isPaused)
  assert.deepEqual(asked, [false, true])
  assert.equal(logBytes(path), 0)
})

test('cuts the log only when it is told that nothing is written, also if it tries again', { skip }, async (t) => {
  const path = newPath(t)
  await leaveLargeLog(t, path)
  const reader = open(t, path)
  reader.exec('BEGIN; SELECT count(*) FROM plants')
  const { keeper } = newKeeper(t, path)
  await until(() => keeper.isPaused)
  await until(() => !keeper.isPaused)
  reader.exec('COMMIT')
  // Long enough for the thread to try again, while nothing can tell it so.
  block(2000)
  assert.ok(logBytes(path) > LARGE_LOG_BYTES)
})

test('has commits empty the log if its thread fails', { skip }, async (t) => {
  const path = newPath(t)
  writeFileSync(path, 'no database '.repeat(1000))
  makeLargeFile(`${path}-wal`)
  const { asked } = newKeeper(t, path)
  await until(() => asked.length === 2)
  assert.deepEqual(asked, [false, true])
})

/** What a process prints that keeps the log of a file until its thread says so. */
function keepElsewhere(path: string, event: 'online' | 'exit'): Promise<{ stdout: string; stderr: string }> {
  const program = `
    import { LogKeeper } from '${import.meta.resolve('../../../src/stores/sqlite/log-keeper.ts')}'
    const timer = setInterval(() => {}, 60_000)
    process.on('worker', (thread) => thread.on('${event}', () => clearInterval(timer)))
    new LogKeeper(${JSON.stringify(path)}, '', () => {})`
  const args = [...process.execArgv, '--input-type=module', '--eval', program]
  return promisify(execFile)(process.execPath, args, { timeout: 20_000 })
}

test('keeps no process alive', { skip }, async (t) => {
  const path = newPath(t)
  await leaveLargeLog(t, path)
  open(t, path).exec('BEGIN; SELECT count(*) FROM plants')
  await keepElsewhere(path, 'online')
})

test('prints nothing', { skip }, async (t) => {
  const path = newPath(t)
  await leaveLargeLog(t, path)
  const { stdout, stderr } = await keepElsewhere(path, 'exit')
  assert.deepEqual({ stdout, stderr }, { stdout: '', stderr: '' })
})

const skipPermission = process.features.typescript === false ? 'this Node.js runs no TypeScript' : skip

test('has commits empty the log if it may not start a thread', { skip: skipPermission }, async (t) => {
  const path = newPath(t)
  makeLargeFile(`${path}-wal`)
  const program = `
    import { LogKeeper } from '${import.meta.resolve('../../../src/stores/sqlite/log-keeper.ts')}'
    const timer = setInterval(() => {}, 60_000)
    new LogKeeper(${JSON.stringify(path)}, '', (isOn) => {
      console.log(isOn)
      if (isOn) clearInterval(timer)
    })`
  const permissions = ['--permission', '--allow-fs-read=*', '--disable-warning=ExperimentalWarning']
  const args = [...permissions, '--input-type=module', '--eval', program]
  // Its coverage would not fit that of this process, which runs other code for the same lines.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env: {} })
  assert.deepEqual({ stdout, stderr }, { stdout: 'false\ntrue\n', stderr: '' })
})
