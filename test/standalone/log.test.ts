import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { formatErrorCode, getRootCauseMessage, flushLog } from '../../src/standalone/log.ts'
import { readDocument } from '../support/package/documents.ts'
import { getValues } from '../support/program/capture-log.ts'
import { scrapeMetrics, startWithMetrics } from '../support/program/metrics.ts'
import { createImportFlags, Program, startProgram, TOKEN } from '../support/program/program.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A long owner, so that a few access log lines fill the buffer. */
const OWNER = 'a'.repeat(20_000)
const REQUESTS = 200

/** Copies the stop event to stdout, which the tests read. */
const COPY_STOP_EVENTS = `
  const write = process.stderr.write.bind(process.stderr)
  process.stderr.write = (line) => {
    if (line.includes('"event":"stop"')) process.stdout.write(line)
    return write(line)
  }`

/** Starts a program whose access log isn't read. */
async function startUnread(t: TestContext, environment = {}): Promise<Program> {
  const settings = { PLANT_STORE_ACCESS_LOG: '1', PLANT_STORE_TOKENS: `${OWNER}:${TOKEN}`, ...environment }
  const program = await Program.start(settings, createImportFlags(COPY_STOP_EVENTS))
  t.after(() => program.stop())
  program.child.stderr.pause()
  return program
}

/** Sends requests, each of which the program logs, and closes their connections. */
async function sendRequests(program: Program, times: number): Promise<void> {
  const bytes = `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: close\r\n\r\n`
  for (let i = 0; i < times; i++) assert.match(await (await program.connect()).send(bytes).closed, /^HTTP\/1\.1 200 /)
}

/** Whether the port is free. Connecting to it would prolong the drain. */
async function isPortFree(port: number): Promise<boolean> {
  const server = createServer()
  const isListening = await once(server.listen(port, '127.0.0.1'), 'listening').then(
    () => true,
    () => false,
  )
  server.close()
  return isListening
}

test('docs/observability.md lists exactly the log events in the sources', () => {
  const listed = readDocument('docs/observability.md').text.matchAll(/^\| `([a-z][a-z-]*)` \|/gm)
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(`src/${path}`, 'utf8'))
    .join('')
  const names = (matches: Iterable<RegExpExecArray>): string[] => Array.from(matches, ([, name]) => name!)
  const logged = names(sources.matchAll(/\b(?:log|exitProcess|onEvent)\('([a-z-]+)'/g))
  const followed = names(sources.matchAll(/\bwatchFile\(\w+, '([a-z-]+)'/g))
  logged.push(...followed.flatMap((name) => [`${name}-read`, `${name}-kept`]))
  assert.deepEqual(names(listed).sort(), [...new Set(logged)].sort())
})

test('docs/observability.md states the actual level of every log event', async (t) => {
  const { program, admin } = await startWithMetrics(t)
  const events = [...(await scrapeMetrics(admin)).matchAll(/^plant_store_log_events_total\{event="([\w-]+)"\}/gm)]
  const rows = readDocument('docs/observability.md').text.matchAll(/^\| `([a-z-]+)` \| (info|warn|error)\b/gm)
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
  await program.stop()
})

for (const [status, level, signals] of [
  [0, 'info', ['SIGTERM']],
  [1, 'error', ['SIGTERM', 'SIGINT']],
] as const) {
  test(`a stop with status ${status} is logged with the level ${level}`, async (t) => {
    const program = await startProgram(t)
    // While a request is in flight, the second signal stops the program.
    if (signals.length > 1) (await program.connect()).send('GET /livez HTTP/1.1\r\n')
    for (const signal of signals) program.child.kill(signal)
    assert.equal(await program.exited, status)
    const stop = await program.waitForLogEvent('stop')
    assert.deepEqual([stop['level'], stop['exitStatus']], [level, status])
  })
}

for (const [how, nodeArgs, reasons] of [
  ['process warnings are logged as JSON', [], ['Careful: the sun is hot']],
  ['process warnings are not logged with --no-warnings', ['--no-warnings'], []],
] as const) {
  test(how, async (t) => {
    const warn = createImportFlags(`process.on('SIGWINCH', () => {
      process.emitWarning('the sun is hot', 'Careful')
      setImmediate(() => console.log('warned'))
    })`)
    const program = await Program.start({}, [...nodeArgs, ...warn])
    t.after(() => program.stop())
    program.child.kill('SIGWINCH')
    await program.stdout.waitForLine((line) => line === 'warned')
    await program.stop()
    const events = program.stderr.lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    const warnings = events.filter(({ event }) => event === 'warning')
    assert.deepEqual(getValues(warnings, 'reason'), reasons)
  })
}

test('flushLog resolves immediately if no lines are buffered', async () => {
  assert.equal(await Promise.race([flushLog().then(() => 'done'), setImmediate('waits')]), 'done')
})

test('flushLog waits until the buffered lines are written', async () => {
  const code = `
    import { flushLog, log } from '${new URL('../../src/standalone/log.ts', import.meta.url).href}'
    for (let i = 0; i < 50; i++) log('warning', { reason: '${OWNER}' })
    await flushLog()
    process.exit()`
  const args = [...process.execArgv, '--input-type=module', '--eval', code]
  const { stderr } = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  assert.equal((await text(stderr)).split('\n').length, 51)
})

// A program that waits for its log reader would never respond.
suite('a log that nobody reads', { timeout: 120_000 }, () => {
  test('the standalone server drops log lines beyond the buffer limit and logs how many were dropped', async (t) => {
    const program = await startUnread(t)
    await sendRequests(program, REQUESTS)
    program.child.stderr.resume()
    const { lines: first } = await program.waitForLogEvent('dropped')
    program.child.stderr.pause()
    await sendRequests(program, REQUESTS)
    program.child.stderr.resume()
    const { lines: second } = await program.waitForLogEvent('dropped', 2)
    await sendRequests(program, 1)
    program.child.kill('SIGTERM')
    assert.equal(await program.exited, 0)
    const count = (event: string) => program.stderr.lines.filter((line) => line.includes(`"event":"${event}"`)).length
    assert.equal(count('response') + Number(first) + Number(second), 2 * REQUESTS + 1)
    assert.equal(count('dropped'), 2)
    // A line is 20 kB long. The program buffers 1 MiB, and the pipe and this process buffer some more.
    for (const lines of [first, second]) assert.ok(Number(lines) > 100, `${String(lines)} lines were dropped`)
    assert.match(program.stderr.lines.at(-1)!, /"event":"stop","exitStatus":0}$/)
  })

  test('the standalone server exits on SIGTERM even if its log is not read', async (t) => {
    // Without connections the drain finishes immediately. Its timeout expires while the program waits a second for the
    // log.
    const program = await startUnread(t, { PLANT_STORE_DRAIN_TIMEOUT_MS: '800' })
    await sendRequests(program, 25)
    const startedAt = performance.now()
    const exited = once(program.child, 'exit', { signal: AbortSignal.timeout(60_000) })
    program.child.kill('SIGTERM')
    // When the port is free, the drain is over, and a second signal has no effect.
    await waitUntil(() => isPortFree(program.port))
    program.child.kill('SIGINT')
    assert.deepEqual(await exited, [0, null])
    const ms = performance.now() - startedAt
    assert.ok(ms >= 1000, `${ms} ms`)
    program.child.stderr.resume()
    await program.exited
    const stops = program.stdout.lines.slice(1)
    assert.deepEqual([stops.length, stops[0]?.endsWith(',"exitStatus":0}')], [1, true])
  })
})

test('getRootCauseMessage joins the messages of all errors in an AggregateError', () => {
  const reasons = ['connect ECONNREFUSED ::1:1', 'connect ECONNREFUSED 127.0.0.1:1']
  const cause = new AggregateError(reasons.map((reason) => new Error(reason)))
  assert.equal(getRootCauseMessage(new Error('The database cannot be used now.', { cause })), reasons.join('; '))
})

test('getRootCauseMessage joins the lines of a multi-line message', () => {
  const message = 'error:0A0000BF:SSL routines:no protocols available\n  in the handshake:\n'
  const reason = 'error:0A0000BF:SSL routines:no protocols available in the handshake:'
  assert.equal(getRootCauseMessage(new Error('Cannot connect.', { cause: new Error(message) })), reason)
})

test('a Deno permission error, which has no code, is logged with its name and the missing flag', () => {
  const error = new Error('Requires sys access to "umask", run again with the --allow-sys flag')
  error.name = 'NotCapable'
  assert.equal(formatErrorCode(error), 'NotCapable without --allow-sys')
})
