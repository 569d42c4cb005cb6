import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { startChild } from '../support/child.ts'
import { packPackage } from '../support/package/packed.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'

/** Node 24 knows of no permission for the network. */
const NET = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []

/** Runs the program with these permissions and settings, in a folder of its own, until it listens or ends. */
async function run(
  t: TestContext,
  flags: readonly string[],
  settings: NodeJS.ProcessEnv,
): Promise<[line: string, status: number | null, cwd: string]> {
  const { folder } = await packPackage()
  const dist = join(folder, 'node_modules/plant-store/dist')
  const cwd = temporaryDirectory(t)
  writeFileSync(join(cwd, 'tokens'), 'ada:YWRh\n')
  const own = ['--disable-warning=ExperimentalWarning', '--permission', `--allow-fs-read=${dist}/*`]
  const given = flags.map((flag) => flag.replace('.', cwd))
  const HOST = settings['HOST']?.replace('.', cwd)
  const env = { PLANT_STORE_TOKENS: 'ada:YWRh', PORT: '0', ...settings, HOST }
  const child = startChild(t, process.execPath, [...own, ...given, join(dist, 'server.js')], { cwd, env })
  const said = text(child.stderr!)
  const ended = once(child, 'exit').then(async ([status]) => [await said, status as number] as const)
  const serving = once(child.stdout!, 'data').then((line) => [String(line), null] as const)
  const [line, status] = await Promise.race([serving, ended])
  return [line.replaceAll(cwd, '.').trim(), status, cwd]
}

suite('under --permission', { skip: Number.parseInt(process.versions.node) < 24 && 'Node 24 has it' }, () => {
  const FILE = { PLANT_STORE_TOKENS: undefined, PLANT_STORE_TOKENS_FILE: 'tokens' }
  const SQLITE = { PLANT_STORE_URL: 'sqlite:plants.db' }
  const SOCKET = { PORT: undefined, HOST: './sock' }
  const [read, write] = ['--allow-fs-read=.', '--allow-fs-write=.']
  const STORE = 'plant-store: PLANT_STORE_URL names a store that cannot be opened:'
  const DENIED = 'Access to this API has been restricted. Use'
  const rows: readonly [NodeJS.ProcessEnv, readonly string[], string][] = [
    [
      FILE,
      [],
      'plant-store: PLANT_STORE_TOKENS_FILE takes a file that can be read, and this one cannot (ERR_ACCESS_DENIED without --allow-fs-read)',
    ],
    [SQLITE, [], `${STORE} SQLite database plants.db: ${DENIED} --allow-fs-read to manage permissions.`],
    [SQLITE, [read], `${STORE} SQLite database plants.db: ${DENIED} --allow-fs-write to manage permissions.`],
    [
      SOCKET,
      [read],
      'plant-store: HOST takes the path of a Unix socket that can be made, and this one cannot (ERR_ACCESS_DENIED without --allow-fs-write)',
    ],
    [
      { PLANT_STORE_URL: 'postgres://a@127.0.0.1/b' },
      [],
      `${STORE} Its driver cannot be loaded (npm install pg): ${DENIED} --allow-fs-read to manage permissions.`,
    ],
  ]
  for (const [settings, flags, line] of rows) {
    test(`says what it lacks: ${Object.values(settings).join(' ')} with [${flags.join(' ')}]`, async (t) => {
      assert.deepEqual((await run(t, [...NET, ...flags], settings)).slice(0, 2), [line, 2])
    })
  }

  test('says that it lacks the network', { skip: NET.length === 0 && 'this Node gives it to all' }, async (t) => {
    const line = 'plant-store: this Node takes --permission only with --allow-net, as the program uses the network'
    assert.deepEqual((await run(t, [], {})).slice(0, 2), [line, 2])
  })

  test('serves with a file of tokens, SQLite and a socket, and is ready', async (t) => {
    const [line, , cwd] = await run(t, [...NET, read, write], { ...FILE, ...SQLITE, ...SOCKET })
    assert.equal(line, 'plant-store listening on unix:./sock')
    const headers = { Authorization: 'Bearer YWRh', 'Content-Type': 'application/json' }
    const send = async (method: string, path: string, body = ''): Promise<unknown[]> => {
      const [response] = (await once(
        request({ socketPath: join(cwd, 'sock'), method, path, headers }).end(body),
        'response',
      )) as [IncomingMessage]
      return [response.statusCode, await text(response)]
    }
    assert.deepEqual(await send('POST', '/plants', '{"id":1,"name":"Fern"}'), [200, '{"name":"Fern"}'])
    assert.equal((await send('GET', '/readyz'))[0], 200)
  })
})
