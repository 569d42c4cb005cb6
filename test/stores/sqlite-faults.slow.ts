// A writer process is killed, or its system calls fail. Then the plants in its file are compared with what it reported.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { startChild, type CleanupScope } from '../support/child-process.ts'
import { skipWithoutMountNamespace, skipWithoutSqlite, skipWithoutStrace } from '../support/skip-reasons.ts'
import { createDatabasePath, listIds, openDatabase } from '../support/sqlite-file.ts'
import { createTempDirectory, createTempFile } from '../support/temp-files.ts'
import { waitUntil } from '../support/wait-until.ts'

const WRITER = fileURLToPath(new URL('../support/sqlite-writer.ts', import.meta.url))
const writerCommand = (...args: unknown[]): string[] => [...process.execArgv, WRITER, ...args.map(String)]

/** Runs a command whose output is that of a writer, and returns the lines. */
async function run(command: string, args: readonly string[]): Promise<string[]> {
  const env = { ...process.env, NODE_V8_COVERAGE: undefined, NODE_NO_WARNINGS: '1' }
  // The writer ends with SIGKILL, so this rejects.
  const { stdout } = await promisify(execFile)(command, args, { env }).catch(
    (error: unknown) => error as { stdout: string },
  )
  return stdout.split('\n')
}

/** Requires that the file contains what a writer reported. */
async function assertReported(t: CleanupScope, path: string, lines: readonly string[]): Promise<void> {
  assert.ok(!lines.some((line) => line.startsWith('fault')), lines.join('\n'))
  /** Whether each plant may be in the file, by what is known of its create and its delete. */
  const states = new Map<bigint, Record<string, string>>()
  for (const line of lines) {
    const [, word, method, id, result = 'unknown'] = /^(call|result) (\w+) (\d+) ?(\w*)/.exec(line) ?? []
    if (word === undefined) continue
    states.set(BigInt(id!), { ...states.get(BigInt(id!)), [method!]: word === 'call' ? 'unknown' : result })
  }
  const store = sqliteStore(path)
  const ids = new Set(await listIds(store))
  await store.close()
  for (const [id, { create, delete: deleted }] of states) {
    const mustExist = create === 'true' && (deleted === undefined || deleted === 'refused')
    const mustNotExist = create === 'refused' || deleted === 'true'
    assert.ok(!mustExist || ids.has(id), `plant ${id} was lost`)
    assert.ok(!mustNotExist || !ids.has(id), `plant ${id} must not exist (${create}, ${deleted})`)
  }
  assert.deepEqual({ ...openDatabase(t, path).prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
}

suite('system calls of the SQLite store', { skip: skipWithoutSqlite || skipWithoutStrace, concurrency: 2 }, () => {
  for (const [calls, fault, numbers, expected] of [
    ['fsync,fdatasync', 'EIO', [9, 14], 'true'],
    ['fsync,fdatasync', 'EIO+', [14], 'unknown'],
    ['pwrite64', 'EIO', [60], 'true'],
    ['pwrite64', 'EIO+', [60], 'unknown'],
    // A disk quota, a file system that has become read-only, and a file size limit.
    ['pwrite64', 'EDQUOT+', [60], 'unknown'],
    ['pwrite64', 'EROFS+', [60], 'unknown'],
    ['pwrite64', 'EFBIG+', [60], 'unknown'],
    ['pwrite64', 'ENOSPC', [60, 61, 62, 63], 'true'],
    ['pwrite64', 'ENOSPC+', [60, 61, 62, 63], 'refused'],
    ['pwrite64', 'SIGKILL', [60, 90], 'true'],
  ] as const) {
    for (const number of numbers) {
      test(`the file matches the results if call ${number} of ${calls} fails with ${fault}`, async (t) => {
        const directory = createTempDirectory(t)
        const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
        const effect = fault === 'SIGKILL' ? 'signal=SIGKILL' : `error=${fault.replace('+', '')}`
        const inject = `inject=${calls}:${effect}:when=${number}${fault.endsWith('+') ? '+' : ''}`
        const strace = ['-f', '-o', trace, '-e', `trace=${calls}`, '-e', inject, process.execPath]
        const lines = await run('strace', [...strace, ...writerCommand(path, 12)])
        await assertReported(t, path, lines)
        assert.ok(
          lines.some((line) => line.endsWith(` ${expected}`)),
          lines.join('\n'),
        )
        if (fault !== 'SIGKILL') assert.match(readFileSync(trace, 'utf8'), /\(INJECTED\)/)
      })
    }
  }

  // SIGKILL keeps the page cache. Only the order of the system calls shows that writes reach the disk.
  test('sync the file between a write and its result', async (t) => {
    const trace = join(createTempDirectory(t), 'trace')
    const strace = ['-f', '-o', trace, '-e', 'trace=fsync,fdatasync,write', process.execPath]
    await run('strace', [...strace, ...writerCommand(createDatabasePath(t), 12)])
    const order = Array.from(readFileSync(trace, 'utf8').matchAll(/sync\(|"call|"result/g), ([event]) => event.at(1))
    // In each batch, the syncs (y) are between the calls (c) and their results (r).
    assert.match(order.join(''), /^y*(?:c+y+r+y*){12}$/)
  })
})

test(
  'a full disk: writes fail with 50300, ping fails, and both work again once there is space',
  {
    skip: skipWithoutSqlite || skipWithoutMountNamespace,
  },
  async (t) => {
    const directory = createTempDirectory(t)
    const script = join(directory, 'script.ts')
    writeFileSync(
      script,
      `import { rmSync, writeFileSync } from 'node:fs'
     import { isUnavailable } from '${new URL('../../src/plants/store.ts', import.meta.url).href}'
     import { sqliteStore } from '${new URL('../../src/stores/sqlite/sqlite-store.ts', import.meta.url).href}'
     const [directory] = process.argv.slice(2)
     const classify = (error) => isUnavailable(error) ? error.isOutcomeUnknown ? '50301' : '50300' : String(error)
     const tryCall = async (call) => { try { return await call() ?? 'ok' } catch (error) { return classify(error) } }
     const store = sqliteStore(directory + '/plants.db')
     const create = (id) => tryCall(() => store.create('ada', { id, name: 'x'.repeat(20_000) }))
     const results = [await create(1n), await tryCall(() => store.ping())]
     try { for (let i = 0; ; i++) writeFileSync(directory + '/ballast' + i, Buffer.alloc(4096)) } catch {}
     results.push(...await Promise.all([create(2n), create(3n)]), await create(4n))
     results.push(await tryCall(() => store.ping()), (await store.list('ada', { limit: 9, maxBytes: 2 ** 30 })).plants.length)
     rmSync(directory + '/ballast0')
     for (let i = 0; i < 50; i++) rmSync(directory + '/ballast' + i, { force: true })
     results.push(await tryCall(() => store.ping()), await create(2n))
     console.log(results.join(' '))`,
    )
    const node = [process.execPath, ...process.execArgv, script, directory].map((word) => `'${word}'`).join(' ')
    const mount = `mount -t tmpfs -o size=1m tmpfs '${directory}/disk'`
    const shell = `mkdir '${directory}/disk' && ${mount} && ${node.replace(/'([^']*)'$/, "'$1/disk'")}`
    const lines = await run('unshare', ['-m', 'sh', '-c', shell])
    assert.equal(lines[0], 'true ok 50300 50300 50300 50300 1 ok true')
  },
)

test('48 kills of processes that share a file lose no acknowledged write', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  const lines: string[] = []
  async function startAndKill(number: number): Promise<void> {
    // A file, because a write to a full pipe fails.
    const output = createTempFile(t, '')
    const file = openSync(output, 'a')
    const child = startChild(t, process.execPath, writerCommand(path, 1e6, number * 1e6), {
      stdio: ['ignore', file, 'inherit'],
    })
    closeSync(file)
    const hasExited = (): boolean => child.exitCode !== null || child.signalCode !== null
    await waitUntil(() => hasExited() || statSync(output).size > 0)
    await sleep(200 * Math.random())
    assert.ok(child.kill('SIGKILL'), 'the writer has exited by itself')
    await once(child, 'exit')
    lines.push(...readFileSync(output, 'utf8').split('\n'))
  }
  for (let round = 0; round < 12; round++) {
    await Promise.all([0, 1, 2, 3].map((i) => startAndKill(4 * round + i)))
  }
  await assertReported(t, path, lines)
  t.diagnostic(`${lines.filter((line) => line.endsWith(' true')).length} acknowledged writes`)
})
