import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { codeOf } from '../support/package/documents.ts'
import { freePort } from '../support/wire/free-port.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('docs/deploying.md shows the Dockerfile', () => {
  assert.equal(codeOf('docs/deploying.md', 'dockerfile'), readFileSync(join(root, 'Dockerfile'), 'utf8'))
})

suite('the Dockerfile', () => {
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  let environment: Record<string, string>

  before(async () => {
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

  test('finds nothing healthy before the program runs', () => {
    const message = `plant-store: connect ECONNREFUSED 127.0.0.1:${environment['PORT']!}\n`
    assert.deepEqual(checkHealth(), [1, '', message])
  })

  test('runs a program that it has built, finds it healthy, and ends it with status 0', async (t) => {
    const end = await run(t)
    assert.deepEqual(checkHealth(), [0, '', ''])
    assert.deepEqual(await end(), [0, null])
  })
})
