import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { before, suite, test } from 'node:test'
import { EVENTS, flushLog } from '../../src/standalone/log.ts'
import { readDocument } from '../support/documents.ts'
import { Program, startProgram, TOKEN } from '../support/program.ts'

/** An owner that makes each line of the access log long, so that few fill what may wait. */
const OWNER = 'a'.repeat(20_000)
const REQUESTS = 200

/** Starts a program and has it log more than may wait, while nobody reads. */
async function startUnread(t: Parameters<typeof startProgram>[0]): Promise<Program> {
  const program = await startProgram(t, {
    PLANT_STORE_ACCESS_LOG: '1',
    PLANT_STORE_TOKENS: `${OWNER}:${TOKEN}`,
    PLANT_STORE_DRAIN_TIMEOUT_MS: '2000',
  })
  program.child.stderr.pause()
  for (let i = 0; i < REQUESTS; i++) assert.equal((await program.fetch('/plants')).status, 200)
  return program
}

test('docs/running.md lists every event of the log, and each is logged', () => {
  const { text } = readDocument('docs/running.md')
  const listed = [...text.matchAll(/^\| `([a-z][a-z-]*)` \|/gm)].map(([, event]) => event)
  assert.deepEqual(listed, [...EVENTS])
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(`src/${path}`, 'utf8'))
    .join('')
  // One of the places is the list itself.
  assert.deepEqual(
    EVENTS.filter((event) => sources.split(`'${event}'`).length <= 2),
    [],
  )
})

test('nothing is waited for if no line waits', async () => {
  const startedAt = performance.now()
  await flushLog()
  assert.ok(performance.now() - startedAt < 250)
})

// A program that waits for its log never answers.
suite('while nobody reads the log', { timeout: 120_000 }, () => {
  // If a module is not compiled yet, tsx starts a compiler that inherits stderr. From then on a write that stderr does not
  // take at once would wait.
  before(async () => {
    assert.equal(await new Program({}, ['--version']).ended, 0)
  })

  test('lines beyond a bound are dropped, and counted once it is read again', async (t) => {
    const program = await startUnread(t)
    program.child.stderr.resume()
    const { lines } = await program.logged('dropped')
    assert.equal((await program.fetch('/plants')).status, 200)
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    const written = program.stderr.all.filter((line) => line.includes('"event":"response"'))
    assert.equal(written.length + Number(lines), REQUESTS + 1)
    // A line has 20 KB. A MiB waits in the program, and some more in the pipe and in this process.
    assert.ok(Number(lines) > 100, `${String(lines)} lines were dropped`)
    assert.match(program.stderr.all.at(-1)!, /"event":"stop","status":0}$/)
  })

  test('the program ends in time all the same, with status 0', async (t) => {
    const program = await startUnread(t)
    // The connections that fetch keeps go shortly before the deadline, which comes while the log is waited for.
    const exited = once(program.child, 'exit', { signal: AbortSignal.timeout(5000) })
    program.child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null])
    program.child.stderr.resume()
    await program.ended
  })
})
