import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { blocksOf, readDocument, type Block } from '../support/package/documents.ts'
import { freePort } from '../support/wire/free-port.ts'
import { packPackage } from '../support/package/packed.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { startNginx } from '../support/wire/proxies.ts'
import { withoutCommand } from '../support/requirements.ts'
import { get, keptIds, post, sendTo } from '../support/wire/service.ts'
import { newPath, skip as needsSqlite } from '../support/database/sqlite-file.ts'
import { temporaryDirectory, temporaryFile } from '../support/temporary-file.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const RUNNING = readDocument('docs/running.md')

test('docs/running.md shows the Dockerfile', () => {
  const [file] = blocksOf(RUNNING, 'dockerfile')
  assert.equal(file!.code, readFileSync(join(root, 'Dockerfile'), 'utf8'))
})

suite('the Dockerfile', () => {
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
  let directory: string
  let environment: Record<string, string>

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
    environment = { HOST: '0.0.0.0', PORT: String(await freePort()) }
    for (const name of lines.slice(1))
      cpSync(join(root, name.slice(1)), join(directory, name.slice(1)), { recursive: true })
    // In place of npm ci.
    symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
    execFileSync('npm', ['run', 'build'], { cwd: directory, stdio: 'ignore' })
    rmSync(join(directory, 'node_modules'))
    rmSync(join(directory, 'src'), { recursive: true })
  })
  after(() => rmSync(directory, { recursive: true }))

  const lines = readFileSync(join(root, '.dockerignore'), 'utf8').trimEnd().split('\n')

  /** The arguments of Node in an instruction. */
  function argsOf(instruction: string): string[] {
    const [, json] = new RegExp(`^${instruction} (.*)$`, 'm').exec(dockerfile)!
    const [node, ...args] = JSON.parse(json!) as string[]
    assert.equal(node, 'node')
    return args
  }

  function checkHealth(): unknown[] {
    const options = { cwd: directory, env: environment, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, argsOf('HEALTHCHECK CMD'), options)
    return [status, stdout, stderr]
  }

  /** Starts the program; settles with its exit, once it is asked for, when it serves. */
  async function run(t: TestContext): Promise<() => Promise<unknown[]>> {
    const child = spawn(process.execPath, argsOf('CMD'), {
      cwd: directory,
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const exited = once(child, 'exit')
    async function end(): Promise<unknown[]> {
      child.kill('SIGTERM')
      return exited
    }
    t.after(end)
    await once(child.stdout, 'data')
    return end
  }

  test('is given only what .dockerignore names', () => assert.equal(lines[0], '*'))

  test('runs a program that it has built, which ends with status 0', async (t) => {
    const end = await run(t)
    assert.deepEqual(await end(), [0, null])
  })

  test('finds nothing healthy before the program runs', () => {
    const message = `plant-store: connect ECONNREFUSED 127.0.0.1:${environment['PORT']!}\n`
    assert.deepEqual(checkHealth(), [1, '', message])
  })

  test('finds a program healthy that runs', async (t) => {
    await run(t)
    assert.deepEqual(checkHealth(), [0, '', ''])
  })
})

test('the link of the installed package is the process that gets SIGTERM', async (t) => {
  const { folder } = await packPackage()
  const child = spawn(join(folder, 'node_modules/.bin/plant-store'), {
    env: { PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter), PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
})

test('systemd finds nothing wrong with the unit', { skip: withoutCommand('systemd-analyze') }, (t) => {
  const path = join(temporaryDirectory(t), 'plant-store.service')
  const [unit] = blocksOf(RUNNING, 'ini')
  // It looks whether the command is there.
  writeFileSync(path, unit!.code.replace('/usr/bin/node', process.execPath))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' })
  assert.equal(
    stderr
      .split('\n')
      .filter((line) => line.includes('plant-store'))
      .join('\n'),
    '',
  )
  assert.equal(status, 0)
})

test('the proxy that docs/running.md shows leads to the program', { skip: withoutCommand('nginx') }, async (t) => {
  const program = await startProgram(t, { PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '75000' })
  const port = await freePort()
  const [configuration] = blocksOf(RUNNING, 'nginx')
  const code = configuration!.code.replace('listen 8080', `listen 127.0.0.1:${port}`)
  await startNginx(t, port, code.replace('127.0.0.1:3000', `127.0.0.1:${program.port}`))
  assert.equal((await sendTo(port, post(TOKEN, '{"id":1,"name":"Fern"}'))).status, 200)
  assert.equal((await sendTo(port, get(TOKEN))).body, '[{"name":"Fern"}]')
})

test('the commands that docs/running.md shows make a token and its digest', async (t) => {
  const [commands] = blocksOf(RUNNING, 'sh')
  const [makeToken, digest] = commands!.code.split('\n')
  const token = execFileSync('sh', ['-c', makeToken!], { encoding: 'utf8' }).trim()
  const sum = execFileSync('sh', ['-c', digest!.replace('the token', token)], { encoding: 'utf8' })
  const program = await startProgram(t, { PLANT_STORE_TOKENS: `ada:$sha256$${sum.split(' ', 1)[0]}` })
  assert.equal((await sendTo(program.port, get(token))).status, 200)
})

const backup = { skip: needsSqlite || withoutCommand('sqlite3') }

test('the command that docs/sqlite.md shows makes a backup while the service runs', backup, async (t) => {
  const path = newPath(t)
  const store = sqliteStore(path)
  await store.create('ada', { id: 1n, name: 'Fern' })
  const [{ code }] = blocksOf(readDocument('docs/sqlite.md'), 'sh') as [Block]
  execFileSync('sh', ['-c', code], { cwd: dirname(path) })
  await store.close()
  const copy = sqliteStore(path.replace('plants.db', 'backup.db'))
  assert.deepEqual(await keptIds(copy), [1n])
  await copy.close()
})

test('HAProxy finds nothing wrong with its configuration', { skip: withoutCommand('haproxy') }, (t) => {
  const [configuration] = blocksOf(RUNNING, 'haproxy')
  const path = temporaryFile(t, configuration!.code)
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-q', '-f', path], { encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
})
