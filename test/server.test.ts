import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { checkReady } from '../src/standalone/command-line.ts'
import { createPlants } from './support/database/create-plants.ts'
import { createImportFlags, Program, startProgram, TOKEN } from './support/program/program.ts'
import { createDatabasePath, skipWithoutSqlite as needsSqlite } from './support/database/sqlite-file.ts'
import { getCode } from './support/package/documents.ts'
import { skipWithoutCommand } from './support/skip-reasons.ts'
import { createTempDirectory, createTempFile } from './support/temp-files.ts'
import { findFreePort } from './support/wire/find-free-port.ts'
import { getPort, serve, servePlants } from './support/wire/service.ts'

async function runUntilExit(
  environment: Record<string, string>,
  args: readonly string[] = [],
  nodeArgs: readonly string[] = [],
): Promise<{ status: unknown; stdout: string; stderr: string }> {
  const { exited: ended, stdout, stderr } = new Program(environment, args, nodeArgs)
  return { status: await ended, stdout: stdout.lines.join('\n'), stderr: stderr.lines.join('\n') }
}

/** Asserts that the program exits with a status after printing one line to stderr. */
async function assertExits(status: number, stderr: string, ...run: Parameters<typeof runUntilExit>): Promise<void> {
  assert.deepEqual(await runUntilExit(...run), { status, stdout: '', stderr: `plant-store: ${stderr}` })
}

const needsCurl = { skip: skipWithoutCommand('curl') }

const README_CURL_LINES = getCode('README.md', 'sh', 'Quick start', 1).trimEnd().split('\n')
const README_OUTPUT = getCode('README.md', 'text')

/** Runs the commands that the program has printed, and returns their output. */
function runPrintedCommands({ stdout }: Program): string {
  const commands = stdout.lines.filter((line) => /^ {2}(?:export|curl) /.test(line)).join('\n')
  return execFileSync('sh', ['-c', commands.replaceAll('curl ', 'curl --silent ')], { encoding: 'utf8' })
}

/** Node arguments that make the program see another Node version. */
function createVersionFlags(version: string): string[] {
  return createImportFlags(
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`,
  )
}

const { engines, version } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly engines: { readonly node: string }
  readonly version: string
}

const invalidPortMessage = 'PORT must be an integer from 0 to 65535'

suite('the standalone server', () => {
  test(
    'prints a demo token, the curl commands of the README and a web UI link if no tokens are configured',
    needsCurl,
    async (t) => {
      const program = new Program({ PORT: '0' })
      t.after(() => program.stop())
      const address = (await program.stdout.waitForLine((line) => line.includes('#token=')))!.trim()
      const [listening, token] = program.stdout.lines
      assert.match(program.stdout.lines.join('\n'), /demo token, which stays in your browser's history\):\n\n *http:/)
      assert.match(listening!, /^plant-store listening on http:\/\/127\.0\.0\.1:[1-9][0-9]*$/)
      assert.match(
        token!,
        /^No tokens are configured\. This demo token \(owner: demo\) is valid until the server stops: [\w-]{32}$/,
      )
      assert.equal(runPrintedCommands(program), README_OUTPUT)
      const curlLines = program.stdout.lines.filter((line) => line.startsWith('  curl '))
      assert.deepEqual(
        curlLines.map((line) => line.trim()),
        README_CURL_LINES,
      )
      assert.equal(address, [listening, token].map((line) => line!.split(' ').at(-1)).join('/#token='))
      assert.match(await (await fetch(address)).text(), /<dd>1\.0\.0<\/dd>[^]*<dd>memory<\/dd>/)
    },
  )

  for (const shell of ['sh', 'bash']) {
    test(`prints export commands that set URL and TOKEN in ${shell}`, needsCurl, async (t) => {
      const program = new Program({ PORT: '0', HOST: '::1' })
      t.after(() => program.stop())
      await program.stdout.waitForLine((line) => line.includes('#token='))
      const exports = program.stdout.lines.filter((line) => line.startsWith('  export '))
      const list = `curl --silent --write-out ' %{http_code}' "$URL/plants" -H "Authorization: Bearer $TOKEN"`
      assert.equal(execFileSync(shell, ['-c', [...exports, list].join('\n')], { encoding: 'utf8' }), '[] 200')
    })
  }

  test('prints curl commands that work even if the Unix socket path contains a quote', needsCurl, async (t) => {
    const program = new Program({ HOST: join(createTempDirectory(t), "it's.sock") })
    t.after(() => program.stop())
    await program.stdout.waitForLine((line) => line.includes('DELETE'))
    assert.equal(runPrintedCommands(program), README_OUTPUT)
  })

  test('disables the web UI and its link with PLANT_STORE_PAGE=0', async (t) => {
    const program = new Program({ PORT: '0', PLANT_STORE_PAGE: '0' })
    t.after(() => program.stop())
    await program.waitUntilServing()
    for (const path of ['/', '/page.js', '/page.css']) assert.equal((await program.fetch(path)).status, 404)
    await program.stop()
    assert.match(program.stdout.lines.join(), /curl/)
    assert.doesNotMatch(program.stdout.lines.join(), /#token=/)
  })

  test('prints and logs its address without revealing the configured token', async (t) => {
    const program = await startProgram(t)
    const { time, ...start } = await program.waitForLogEvent('start')
    assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    assert.deepEqual(start, { level: 'info', event: 'start', address: program.url, store: 'memory' })
    program.child.kill('SIGTERM')
    await program.exited
    assert.deepEqual(program.stdout.lines, [`plant-store listening on ${program.url}`])
    assert.doesNotMatch(program.stderr.lines.join('\n'), new RegExp(TOKEN))
  })

  for (const argument of ['--help', '-h']) {
    test(`lists the settings with ${argument}`, async () => {
      const { status, stdout, stderr } = await runUntilExit({}, [argument])
      assert.equal(status, 0)
      assert.match(
        stdout,
        /^Usage: plant-store \[--help \| --version \| --ready \| --migrate\]\n[^]*^ {2}PLANT_STORE_TOKENS_FILE$/m,
      )
      assert.match(stdout, /^ {2}PLANT_STORE_URL=memory:\n.*sqlite:plants\.db/m)
      assert.equal(stderr, '')
    })
  }

  test('prints the version of the package with --version', async () => {
    assert.deepEqual(await runUntilExit({}, ['--version']), { status: 0, stdout: version, stderr: '' })
  })

  for (const args of [['--port=80'], ['--port', '80'], ['--help', 'me']]) {
    const problem =
      'unknown argument; use --help, --version, --ready or --migrate. Settings are environment variables, such as PORT=4000'
    test(`rejects the arguments ${args.join(' ')} with a one-line message and status 2`, () =>
      assertExits(2, problem, {}, args))
  }

  test('runs on the oldest Node version in package.json', async () => {
    const oldest = `${/\d+\.\d+/.exec(engines.node)![0]}.0`
    const { status, stderr } = await runUntilExit({}, ['--version'], createVersionFlags(oldest))
    assert.deepEqual([oldest, status, stderr], ['20.19.0', 0, ''])
  })

  for (const version of ['20.18.3', '18.20.8', '9.11.2']) {
    test(`rejects Node ${version} with a one-line message and status 2`, () =>
      assertExits(2, `Node 20.19 or later is required; this is Node ${version}`, {}, [], createVersionFlags(version)))
  }

  for (const [signal, args, status, stdout] of [
    ['SIGHUP', ['--version'], 0, version],
    ['SIGTERM', ['--ready'], 1, ''],
    ['SIGTERM', [], 0, ''],
    ['SIGINT', [], 0, ''],
  ] as const) {
    const ending = signal === 'SIGHUP' ? 'continues' : `exits with status ${status}`
    test(`${ending} if it receives ${signal} during its imports, with the arguments [${args.join()}]`, async () => {
      // If the signal ends the program, its first import never finishes.
      const source = `process.kill(process.pid, '${signal}'); await new Promise(() => setInterval(() => {}, 1000))`
      const hooks = `export async function resolve(name, context, next) {
        if (!name.endsWith('/command-line.ts')) return next(name, context)
        if ('${signal}' !== 'SIGHUP') return { url: 'data:text/javascript,' + ${JSON.stringify(encodeURIComponent(source))}, shortCircuit: true }
        process.kill(process.pid, 'SIGHUP')
        return next(name, context)
      }`
      const register = `import { register } from 'node:module'
        register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}))`
      // Node 26 deprecates `register`, but Node 20 has no alternative.
      const nodeArgs = ['--disable-warning=DEP0205', ...createImportFlags(register)]
      assert.deepEqual(await runUntilExit({}, args, nodeArgs), { status, stdout, stderr: '' })
    })
  }

  // Container engines accept only 0 and 1 as the status of a health check.
  for (const [status, ...args] of [[2], [1, '--ready'], [2, '--migrate']] as const) {
    test(`rejects an invalid setting with a one-line message and status ${status}, with the arguments [${args.join()}]`, () => {
      return assertExits(status, invalidPortMessage, { PORT: 'http' }, args)
    })
  }

  test('exits with status 1 and a one-line message if the port is in use', async (t) => {
    const PORT = String(getPort(await servePlants(t)))
    await assertExits(1, `PORT must be a free port on HOST; ${PORT} is in use (EADDRINUSE)`, { PORT })
  })

  test('exits with status 1 and a stack trace after an unexpected error', async () => {
    const fault = `process.stdout.write = () => { throw new Error('a fault') }`
    const { status, stdout, stderr } = await runUntilExit({}, ['--help'], createImportFlags(fault))
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, /^plant-store: Error: a fault\n {4}at /)
  })

  test('applies the configured limits to the service', async (t) => {
    const program = await startProgram(t, {
      PLANT_STORE_MAX_BODY_BYTES: '100000',
      PLANT_STORE_MAX_LISTS_PER_OWNER: '1',
      PLANT_STORE_STORE_TIMEOUT_MS: '1000',
    })
    assert.equal((await program.fetch('/plants', { method: 'POST', body: ' '.repeat(100_001) })).status, 413)
    // More than the kernel buffers for a client that doesn't read.
    await createPlants(program.port, TOKEN, 400, () => ({ name: 'x'.repeat(60_000) }))
    const unread = await program.connect()
    unread.send(`GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
    await unread.waitFor(/^HTTP\/1.1 200 /)
    unread.socket.pause()
    const beside = await program.fetch('/plants')
    assert.deepEqual([beside.status, ((await beside.json()) as { error: number }).error], [503, 50300])
  })
})

test('the standalone server continues to run after the process that reads its log has exited', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
  program.child.stderr.destroy()
  for (let i = 0; i < 3; i++) assert.equal((await program.fetch('/plants')).status, 200)
})

suite('--ready', () => {
  for (const host of ['127.0.0.1', '0.0.0.0', '::', 'localhost']) {
    test(`exits with status 0 if the server at ${host} is ready`, async (t) => {
      const { port } = await startProgram(t, { HOST: host })
      const address = { HOST: host, PORT: String(port) }
      // --ready ignores the token file, which may become invalid while the server runs.
      const environment = { ...address, PLANT_STORE_TOKENS_FILE: '/nowhere/tokens' }
      assert.deepEqual(await runUntilExit(environment, ['--ready']), { status: 0, stdout: '', stderr: '' })
    })
  }

  test('prints the reason and exits with status 1 if the server is not ready', async (t) => {
    const program = await startProgram(t, { PLANT_STORE_DRAIN_DELAY_MS: '60000' })
    program.child.kill('SIGTERM')
    await program.waitForLogEvent('drain-delay')
    const problem = 'the server is not ready: {"error":50300,"message":"The service is shutting down."}'
    await assertExits(1, problem, { PORT: String(program.port) }, ['--ready'])
  })

  test('exits with status 1 if PORT is 0', () => {
    const problem = 'PORT must not be 0 for --ready; set it to the port that the server listens on'
    return assertExits(1, problem, { PORT: '0' }, ['--ready'])
  })

  test('fails if the server does not respond before the timeout', async (t) => {
    const address = { host: '127.0.0.1', port: getPort(await serve(t, () => undefined)) }
    await assert.rejects(checkReady(address, 100), { message: 'the server did not respond within 100 ms' })
  })
})

suite('--migrate', () => {
  test('creates a SQLite file and succeeds when run again', { skip: needsSqlite }, async (t) => {
    const url = `sqlite:${createDatabasePath(t)}`
    // The command-line option overrides PLANT_STORE_MIGRATE.
    const environment = { PLANT_STORE_URL_FILE: createTempFile(t, `${url}\n`), PLANT_STORE_MIGRATE: '0' }
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await runUntilExit(environment, ['--migrate']), { status: 0, stdout: '', stderr: '' })
    }
    const program = await startProgram(t, { PLANT_STORE_URL: url, PLANT_STORE_MIGRATE: '0' })
    assert.equal(await (await program.fetch('/plants')).text(), '[]')
  })

  test('exits with status 2 if the store cannot be opened', { skip: needsSqlite }, () => {
    const problem = `cannot open the store at PLANT_STORE_URL: SQLite database /nowhere/a: ENOENT: no such file or directory, open '/nowhere/a'`
    return assertExits(2, problem, { PLANT_STORE_URL: 'sqlite:/nowhere/a' }, ['--migrate'])
  })

  test('exits with status 1 if the database is unreachable', async () => {
    const url = `postgres://ada@127.0.0.1:${await findFreePort()}/plants`
    const problem = `cannot use the store at PLANT_STORE_URL: connect ECONNREFUSED 127.0.0.1:${new URL(url).port}`
    await assertExits(1, problem, { PLANT_STORE_URL: url }, ['--migrate'])
  })

  for (const url of ['memory:', 'sqlite::memory:']) {
    const problem = 'PLANT_STORE_URL must be a persistent store for --migrate, not one in memory'
    test(`exits with status 2 for the in-memory store ${url}`, () =>
      assertExits(2, problem, { PLANT_STORE_URL: url }, ['--migrate']))
  }
})
