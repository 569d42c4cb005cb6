import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { VARIABLES } from '../../src/standalone/settings/table.ts'
import { VERSION } from '../../src/version.ts'
import { StandaloneServer, startServer } from '../support/standalone-server.ts'
import { getPort, listen } from '../support/service.ts'
import { skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'

async function run(t: TestContext, args: string[], environment: Record<string, string> = {}) {
  const server = new StandaloneServer({ PLANT_STORE_WEB_UI: '0', ...environment }, args)
  t.after(() => server.stop())
  return { status: await server.exited, stdout: server.stdout.lines, stderr: server.stderr.lines }
}

suite('the command line', () => {
  test('--help prints all settings with their defaults', async (t) => {
    const { status, stdout, stderr } = await run(t, ['--help'])
    assert.deepEqual([status, stderr], [0, []])
    for (const { name, defaultValue, description, expects } of Object.values(VARIABLES)) {
      const index = stdout.indexOf(`  ${name}${defaultValue === undefined ? '' : `=${defaultValue}`}`)
      assert.notEqual(index, -1, name)
      assert.equal(stdout[index + 1], `      ${description} (${expects})`)
    }
  })

  test('exits with 1, without a stack, if nobody reads the output', async (t) => {
    const server = new StandaloneServer({}, ['--help'])
    t.after(() => server.stop())
    server.child.stdout.destroy()
    assert.deepEqual([await server.exited, server.stderr.lines], [1, []])
  })

  test('--version prints the version of the package', async (t) => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.equal(VERSION, version)
    assert.deepEqual(await run(t, ['--version']), { status: 0, stdout: [version], stderr: [] })
  })

  for (const args of [['--port=1'], ['--help', '--version']]) {
    test(`rejects ${args.join(' ')}`, async (t) => {
      const message =
        'plant-store: unknown argument; use --help, --version, --ready or --migrate. Settings are environment variables, such as PORT=4000'
      assert.deepEqual(await run(t, args), { status: 2, stdout: [], stderr: [message] })
    })
  }

  test('an invalid setting is one line, and the exit status is 2', async (t) => {
    const stderr = ['plant-store: PORT must be an integer from 0 to 65535']
    assert.deepEqual(await run(t, [], { PORT: 'a' }), { status: 2, stdout: [], stderr })
  })

  test('without tokens, prints a demo token and commands that work', async (t) => {
    const server = new StandaloneServer({ PORT: '0', PLANT_STORE_WEB_UI: '0' })
    t.after(() => server.stop())
    await server.waitUntilServing()
    const exported = await server.stdout.waitForLine((line) => line.startsWith('  export TOKEN='))
    const token = /'(.*)'/.exec(exported!)![1]!
    await server.stdout.waitForLine((line) => line.startsWith('  curl '))
    assert.ok(server.stdout.lines.includes(`  export URL='${server.url}'`))
    assert.equal((await server.fetch('/plants', {}, token)).status, 200)
  })
})

suite('--ready', () => {
  test('exits with 0 if the server is ready', async (t) => {
    const server = await startServer(t)
    const environment = { PORT: String(server.port), PLANT_STORE_TOKENS_FILE: '/nowhere' }
    assert.deepEqual(await run(t, ['--ready'], environment), { status: 0, stdout: [], stderr: [] })
  })

  test('exits with 1 if the server is not ready, or is not running', async (t) => {
    const server = await startServer(t, { PLANT_STORE_URL: 'postgres://127.0.0.1:1/plants' })
    const unready = await run(t, ['--ready'], { PORT: String(server.port) })
    assert.equal(unready.status, 1)
    assert.match(unready.stderr.join(), /^plant-store: the server is not ready: \{"error":50300,/)
    const missing = await run(t, ['--ready'], { PORT: '1' })
    assert.deepEqual(missing, { status: 1, stdout: [], stderr: ['plant-store: connect ECONNREFUSED 127.0.0.1:1'] })
  })

  test('exits with 1 if the response does not end', async (t) => {
    const server = createServer((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
    await listen(server)
    t.after(() => server.close())
    const { status, stderr } = await run(t, ['--ready'], { PORT: String(getPort(server)) })
    assert.deepEqual([status, stderr], [1, ['plant-store: the server did not respond within 5000 ms']])
  })

  test('needs a port', async (t) => {
    const { status, stderr } = await run(t, ['--ready'], { PORT: '0' })
    const message = 'plant-store: PORT must not be 0 for --ready; set it to the port that the server listens on'
    assert.deepEqual([status, stderr], [1, [message]])
  })
})

suite('--migrate', () => {
  test('creates the SQLite file', { skip: skipWithoutSqlite }, async (t) => {
    const environment = {
      PLANT_STORE_URL: `sqlite:${join(createTempDirectory(t), 'plants.db')}`,
      PLANT_STORE_MIGRATE: '0',
    }
    const missing = await run(t, [], { ...environment, PORT: '0' })
    assert.equal(missing.status, 2)
    assert.match(missing.stderr.join(), /^plant-store: cannot open the store at PLANT_STORE_URL: /)
    assert.equal((await run(t, ['--migrate'], environment)).status, 0)
    await startServer(t, environment)
  })

  test('does not accept plants in memory', async (t) => {
    const { status, stderr } = await run(t, ['--migrate'])
    assert.deepEqual([status, stderr], [2, ['plant-store: PLANT_STORE_URL must not be memory: for --migrate']])
  })

  test('exits with 1 if the database server is unreachable, without the password', async (t) => {
    const environment = { PLANT_STORE_URL: 'postgres://ada:secret@127.0.0.1:1/plants' }
    const { status, stderr } = await run(t, ['--migrate'], environment)
    assert.equal(status, 1)
    assert.match(stderr.join(), /^plant-store: cannot use the store at PLANT_STORE_URL: .*ECONNREFUSED/)
    assert.doesNotMatch(stderr.join(), /secret/)
  })
})

/** Older versions compile TypeScript with a package, which needs more permissions. */
const skipWithoutTypes = !process.features.typescript && 'needs Node 22.18 or later'

suite('with --permission, the line about a denied access names the resource', { skip: skipWithoutTypes }, () => {
  for (const [name, prefix, message] of [
    ['PLANT_STORE_TOKENS_FILE', '', 'PLANT_STORE_TOKENS_FILE: the file cannot be read (DENIED)'],
    ['PLANT_STORE_URL', 'sqlite:', 'cannot open the store at PLANT_STORE_URL: DENIED'],
  ] as const) {
    test(name, async (t) => {
      const path = join(createTempDirectory(t), 'denied')
      writeFileSync(path, 'ada:YWRh\n')
      const root = join(import.meta.dirname, '../..')
      const isStable = process.allowedNodeEnvironmentFlags.has('--permission')
      const flags = [isStable ? '--permission' : '--experimental-permission', `--allow-fs-read=${root}/*`]
      if (process.allowedNodeEnvironmentFlags.has('--allow-net')) flags.push('--allow-net')
      // The tests keep compiled code in a cache.
      flags.push('--no-warnings', `--allow-fs-write=${root}/node_modules/.cache/*`)
      const environment = { PORT: '0', PLANT_STORE_WEB_UI: '0', [name]: prefix + path }
      const server = new StandaloneServer(environment, [], flags)
      t.after(() => server.stop())
      assert.equal(await server.exited, 2)
      const reason = `ERR_ACCESS_DENIED: --permission denies FileSystemRead for ${path}`
      assert.deepEqual(server.stderr.lines, [`plant-store: ${message.replace('DENIED', reason)}`])
    })
  }
})
