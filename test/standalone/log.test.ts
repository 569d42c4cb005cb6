import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { firstReason, flushLog } from '../../src/standalone/log.ts'
import { readDocument } from '../support/package/documents.ts'
import { valuesOf } from '../support/program/captured-log.ts'
import { scrape, startWithMetrics } from '../support/program/metrics.ts'
import { importing, Program, startProgram, TOKEN } from '../support/program/program.ts'
import { until } from '../support/until.ts'

/** An owner that makes each line of the access log long, so that few fill what may wait. */
const OWNER = 'a'.repeat(20_000)
const REQUESTS = 200

/** Writes the last lines of the log to stdout too, where they are read. */
const REPEAT_STOPS = `
  const write = process.stderr.write.bind(process.stderr)
  process.stderr.write = (line) => {
    if (line.includes('"event":"stop"')) process.stdout.write(line)
    return write(line)
  }`

/** Starts a program whose access log nobody reads. */
async function startUnread(t: TestContext, environment = {}): Promise<Program> {
  const settings = { PLANT_STORE_ACCESS_LOG: '1', PLANT_STORE_TOKENS: `${OWNER}:${TOKEN}`, ...environment }
  const program = await Program.start(settings, importing(REPEAT_STOPS))
  t.after(() => program.end())
  program.child.stderr.pause()
  return program
}

/** Has the program log a line for each request, and leaves no connection. */
async function request(program: Program, times: number): Promise<void> {
  const bytes = `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: close\r\n\r\n`
  for (let i = 0; i < times; i++) assert.match(await (await program.connect()).send(bytes).closed, /^HTTP\/1\.1 200 /)
}

/** Whether nobody listens on a port. To connect there would put the end of a drain off. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const isListening = await once(server.listen(port, '127.0.0.1'), 'listening').then(
    () => true,
    () => false,
  )
  server.close()
  return isListening
}

test('docs/observing.md lists every event of the log, and each is logged', () => {
  const listed = readDocument('docs/observing.md').text.matchAll(/^\| `([a-z][a-z-]*)` \|/gm)
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(`src/${path}`, 'utf8'))
    .join('')
  const names = (matches: Iterable<RegExpExecArray>): string[] => Array.from(matches, ([, name]) => name!)
  const logged = names(sources.matchAll(/\b(?:log|end|onEvent)\('([a-z-]+)'/g))
  const followed = names(sources.matchAll(/\bfollowFile\(\w+, '([a-z-]+)'/g))
  logged.push(...followed.flatMap((name) => [`${name}-read`, `${name}-kept`]))
  assert.deepEqual(names(listed).sort(), [...new Set(logged)].sort())
})

test('docs/observing.md lists the level of every event', async (t) => {
  const { program, admin } = await startWithMetrics(t)
  const events = [...(await scrape(admin)).matchAll(/^plant_store_log_events_total\{event="([\w-]+)"\}/gm)]
  const rows = readDocument('docs/observing.md').text.matchAll(/^\| `([a-z-]+)` \| (info|warn|error)\b/gm)
  const listed = Array.from(rows, ([, event, level]) => [event, level])
  assert.deepEqual(events.map(([, event]) => event).sort(), listed.map(([event]) => event).sort())
  const module = new URL('../../src/standalone/log.ts', import.meta.url).href
  const code = `import { log } from '${module}'\nfor (const event of ${JSON.stringify(listed)}) log(event[0], {})`
  const { stderr } = spawnSync(process.execPath, [...process.execArgv, '--input-type=module', '--eval', code])
  const lines = stderr.toString().trim().split('\n')
  assert.deepEqual(
    lines.map((line) => Object.keys(JSON.parse(line) as object)),
    Array(listed.length).fill(['time', 'level', 'event']),
  )
  const logged = lines.map((line) => JSON.parse(line) as Record<string, string>)
  assert.deepEqual(
    logged.map(({ event, level }) => [event, level]),
    listed,
  )
  await program.end()
})

for (const [status, level, signals] of [
  [0, 'info', ['SIGTERM']],
  [1, 'error', ['SIGTERM', 'SIGINT']],
] as const) {
  test(`a stop with status ${status} has the level ${level}`, async (t) => {
    const program = await startProgram(t)
    // With a request under way, only the second signal ends the program.
    if (signals.length > 1) (await program.connect()).send('GET /livez HTTP/1.1\r\n')
    for (const signal of signals) program.child.kill(signal)
    assert.equal(await program.ended, status)
    const stop = await program.logged('stop')
    assert.deepEqual([stop['level'], stop['exitStatus']], [level, status])
  })
}

for (const [how, nodeArgs, reasons] of [
  ['logs warnings of Node as JSON', [], ['Careful: the sun is hot']],
  ['logs no warnings of Node with --no-warnings', ['--no-warnings'], []],
] as const) {
  test(how, async (t) => {
    const warn = importing(`process.on('SIGWINCH', () => {
      process.emitWarning('the sun is hot', 'Careful')
      setImmediate(() => console.log('warned'))
    })`)
    const program = await Program.start({}, [...nodeArgs, ...warn])
    t.after(() => program.end())
    program.child.kill('SIGWINCH')
    await program.stdout.find((line) => line === 'warned')
    await program.end()
    const events = program.stderr.all.map((line) => JSON.parse(line) as Record<string, unknown>)
    const warnings = events.filter(({ event }) => event === 'warning')
    assert.deepEqual(valuesOf(warnings, 'reason'), reasons)
  })
}

test('nothing is waited for if no line waits', async () => {
  assert.equal(await Promise.race([flushLog().then(() => 'done'), setImmediate('waits')]), 'done')
})

test('lines that wait are written before the process ends', async () => {
  const code = `
    import { flushLog, log } from '${new URL('../../src/standalone/log.ts', import.meta.url).href}'
    for (let i = 0; i < 50; i++) log('warning', { reason: '${OWNER}' })
    await flushLog()
    process.exit()`
  const args = [...process.execArgv, '--input-type=module', '--eval', code]
  const { stderr } = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  assert.equal((await text(stderr)).split('\n').length, 51)
})

// A program that waits for its log never answers.
suite('while nobody reads the log', { timeout: 120_000 }, () => {
  test('lines beyond a bound are dropped, and counted each time it is read again', async (t) => {
    const program = await startUnread(t)
    await request(program, REQUESTS)
    program.child.stderr.resume()
    const { lines: first } = await program.logged('dropped')
    program.child.stderr.pause()
    await request(program, REQUESTS)
    program.child.stderr.resume()
    const { lines: second } = await program.logged('dropped', 2)
    await request(program, 1)
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    const count = (event: string) => program.stderr.all.filter((line) => line.includes(`"event":"${event}"`)).length
    assert.equal(count('response') + Number(first) + Number(second), 2 * REQUESTS + 1)
    assert.equal(count('dropped'), 2)
    // A line has 20 KB. A MiB waits in the program, and some more in the pipe and in this process.
    for (const lines of [first, second]) assert.ok(Number(lines) > 100, `${String(lines)} lines were dropped`)
    assert.match(program.stderr.all.at(-1)!, /"event":"stop","exitStatus":0}$/)
  })

  test('the program ends all the same, half a second after its last line, and as long before it', async (t) => {
    // Without connections the drain is over at once. Its deadline comes while the log is waited for, which takes a second.
    const program = await startUnread(t, { PLANT_STORE_DRAIN_TIMEOUT_MS: '800' })
    await request(program, 25)
    const startedAt = performance.now()
    const exited = once(program.child, 'exit', { signal: AbortSignal.timeout(60_000) })
    program.child.kill('SIGTERM')
    // When it no longer listens, the drain is over, and a signal changes nothing any more.
    await until(() => isFree(program.port))
    program.child.kill('SIGINT')
    assert.deepEqual(await exited, [0, null])
    const ms = performance.now() - startedAt
    assert.ok(ms >= 1000, `${ms} ms`)
    program.child.stderr.resume()
    await program.ended
    const stops = program.stdout.all.slice(1)
    assert.deepEqual([stops.length, stops[0]?.endsWith(',"exitStatus":0}')], [1, true])
  })
})

test('the first reason of a failure is that of its cause, or those of each address of a host', () => {
  const reasons = ['connect ECONNREFUSED ::1:1', 'connect ECONNREFUSED 127.0.0.1:1']
  const cause = new AggregateError(reasons.map((reason) => new Error(reason)))
  assert.equal(firstReason(new Error('The database cannot be used now.', { cause })), reasons.join('; '))
})

test('gives a reason of several lines in one', () => {
  const message = 'error:0A0000BF:SSL routines:no protocols available\n  in the handshake:\n'
  const reason = 'error:0A0000BF:SSL routines:no protocols available in the handshake:'
  assert.equal(firstReason(new Error('Cannot connect.', { cause: new Error(message) })), reason)
})
