import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { startChild, waitForOutput } from '../support/child-process.ts'
import { packPackage } from '../support/package/packed-package.ts'
import { skipBeforeNode } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'

/** Node 24 doesn't have a permission for the network. */
const NETWORK_FLAGS = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []

/**
 * Returns the arguments and options that run the standalone server with these permissions and settings in a new folder.
 */
async function prepareServer(
  t: TestContext,
  flags: readonly string[],
  settings: NodeJS.ProcessEnv,
): Promise<[args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }]> {
  const dist = join((await packPackage()).folder, 'node_modules/plant-store/dist')
  const cwd = createTempDirectory(t)
  writeFileSync(join(cwd, 'tokens'), 'ada:YWRh\n')
  const own = ['--disable-warning=ExperimentalWarning', '--permission', `--allow-fs-read=${dist}/*`]
  const env = { PLANT_STORE_TOKENS: 'ada:YWRh', PORT: '0', ...settings, HOST: settings['HOST']?.replace('.', cwd) }
  return [[...own, ...flags.map((flag) => flag.replace('.', cwd)), join(dist, 'server.js')], { cwd, env }]
}

suite('the standalone server with --permission', { skip: skipBeforeNode(24) }, () => {
  const FILE = { PLANT_STORE_TOKENS: undefined, PLANT_STORE_TOKENS_FILE: 'tokens' }
  const SQLITE = { PLANT_STORE_URL: 'sqlite:plants.db' }
  const SOCKET = { PORT: undefined, HOST: './sock' }
  const POSTGRES = { PLANT_STORE_URL: 'postgres://a@127.0.0.1/b' }
  const [read, write] = ['--allow-fs-read=.', '--allow-fs-write=.']
  const refused = (flag: string): string => `(ERR_ACCESS_DENIED without ${flag})`
  const closed = (why: string, flag: string): string =>
    `cannot open the store at PLANT_STORE_URL: ${why}: ` +
    `Access to this API has been restricted. Use ${flag} to manage permissions.`
  const rows: readonly [flags: readonly string[], settings: NodeJS.ProcessEnv, message: string][] = [
    [NETWORK_FLAGS, FILE, `PLANT_STORE_TOKENS_FILE: the file cannot be read ${refused('--allow-fs-read')}`],
    [NETWORK_FLAGS, SQLITE, closed('SQLite database plants.db', '--allow-fs-read')],
    [[...NETWORK_FLAGS, read], SQLITE, closed('SQLite database plants.db', '--allow-fs-write')],
    [
      [...NETWORK_FLAGS, read],
      SOCKET,
      `HOST must be a path where a Unix socket can be created; creating it failed ${refused('--allow-fs-write')}`,
    ],
    [NETWORK_FLAGS, POSTGRES, closed('cannot load the pg driver (npm install pg)', '--allow-fs-read')],
    [[], {}, 'with --permission, the server also needs --allow-net'],
  ]
  for (const [flags, settings, message] of rows) {
    const skip = flags.length === 0 && NETWORK_FLAGS.length === 0 && 'this Node version always permits the network'
    const given = `${Object.values(settings).join(' ')} with [${flags.join(' ')}]`
    test(`exits with status 2 and names the missing permission: ${given}`, { skip }, async (t) => {
      const [args, options] = await prepareServer(t, flags, settings)
      const { status, stderr } = spawnSync(process.execPath, args, { ...options, encoding: 'utf8' })
      assert.deepEqual([status, stderr], [2, `plant-store: ${message}\n`])
    })
  }

  test('works with a token file, SQLite and a Unix socket', async (t) => {
    const [args, options] = await prepareServer(t, [...NETWORK_FLAGS, read, write], { ...FILE, ...SQLITE, ...SOCKET })
    const path = join(options.cwd, 'sock')
    const child = startChild(t, process.execPath, args, options)
    assert.equal(await waitForOutput(child), `plant-store listening on unix:${path}\n`)
    const client = await RawConnection.open(path)
    const fields = 'HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer YWRh\r\nContent-Type: application/json\r\n'
    client.send(`POST /plants ${fields}Content-Length: 22\r\n\r\n{"id":1,"name":"Fern"}`)
    client.send(`GET /readyz ${fields}Connection: close\r\n\r\n`)
    assert.deepEqual(await client.readStatuses(), [200, 200])
  })
})
