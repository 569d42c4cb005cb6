import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { waitForOutput } from '../support/child-process.ts'
import { skipWithoutSqlite as needsSqlite } from '../support/database/sqlite-file.ts'
import { getCode, readDocument } from '../support/package/documents.ts'
import { packPackage, runScript, ENV_WITHOUT_COVERAGE } from '../support/package/packed-package.ts'
import { skipUnlessNode24 } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('docs/deployment.md shows the Dockerfile', () => {
  assert.equal(getCode('docs/deployment.md', 'dockerfile'), readFileSync(join(root, 'Dockerfile'), 'utf8'))
})

const [buildStage, imageStage] = readFileSync(join(root, 'Dockerfile'), 'utf8').split('\n\n') as [string, string]
const packageDockerfile = getCode('docs/deployment.md', 'dockerfile', undefined, 1)

const NODE = Number.parseInt(process.versions.node)

/** Adapts the arguments of the image, which has Node 24, to the Node version of this test and to a local directory. */
function adaptArguments(args: readonly string[], cwd: string) {
  const known = args.filter((arg) => NODE >= 24 || !/^--(?:permission|allow-)/.test(arg))
  const net = NODE >= 26 && known.includes('--permission') ? ['--allow-net'] : []
  return [...net, ...known.map((arg) => arg.replace(/(?<==)\/(?:app\/)?/, `${cwd}/`))]
}

/** Starts the command of a Dockerfile instruction. */
function startInstruction(stage: string, instruction: string, cwd: string, env: NodeJS.ProcessEnv): ChildProcess {
  const [, json] = new RegExp(`^${instruction} (.*)$`, 'm').exec(stage)!
  const [command, ...args] = JSON.parse(json!) as [string, ...string[]]
  const [, variables] = /^ENV (.*)$/m.exec(stage)!
  const set = Object.fromEntries(variables!.split(' ').map((entry) => entry.split(/=(.*)/))) as Record<string, string>
  return spawn(command, adaptArguments(args, cwd), { cwd, env: { PATH: ENV_WITHOUT_COVERAGE['PATH'], ...set, ...env } })
}

/** Resolves with the exit status of a process and its stderr. */
async function waitForExit(child: ChildProcess) {
  const [stderr, ended] = await Promise.all([text(child.stderr!), once(child, 'exit') as Promise<unknown[]>])
  return [ended[0], stderr]
}

suite('the Dockerfile', () => {
  const lines = readFileSync(join(root, '.dockerignore'), 'utf8').trimEnd().split('\n')
  const folder = createTempDirectory({ after })
  const app = join(folder, 'app')

  before(async () => {
    const built = join(folder, 'build')
    for (const name of lines.slice(1).map((line) => line.slice(1))) {
      cpSync(join(root, name), join(built, name), { recursive: true })
    }
    // Instead of npm ci.
    symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'))
    await runScript(/^RUN (npm run build.*)$/m.exec(buildStage)![1]!, built)
    for (const [, from, to] of imageStage.matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S*)$/gm)) {
      cpSync(join(built, from!), join(app, to! || from!), { recursive: true })
    }
  })

  test('treats .dockerignore as an allowlist', () => assert.equal(lines[0], '*'))

  test('installs dependencies before copying the sources, so that Docker can cache the dependencies', () => {
    assert.match(buildStage, /^COPY package\.json package-lock\.json \.\/\nRUN npm ci .*\nCOPY \. \.$/m)
  })

  for (const [what, stage, folderOf] of [
    ['in the repository', imageStage, () => app],
    ['for the package', packageDockerfile, async () => (await packPackage()).folder],
  ] as const) {
    test(`${what} starts a server that passes its health check and exits with status 0 on SIGTERM`, async (t) => {
      const cwd = await folderOf()
      const PORT = String(await findFreePort())
      const check = () => waitForExit(startInstruction(stage, 'HEALTHCHECK CMD', cwd, { PORT }))
      assert.deepEqual(await check(), [1, `plant-store: connect ECONNREFUSED 127.0.0.1:${PORT}\n`])
      for (const folder of ['data', 'run/secrets']) mkdirSync(join(cwd, folder), { recursive: true })
      const PLANT_STORE_TOKENS_FILE = join(cwd, 'run/secrets/tokens')
      writeFileSync(PLANT_STORE_TOKENS_FILE, 'ada:YWRh\n')
      const PLANT_STORE_URL = needsSqlite === false ? `sqlite:${join(cwd, 'data/plants.db')}` : 'memory:'
      const program = startInstruction(stage, 'CMD', cwd, { PORT, PLANT_STORE_TOKENS_FILE, PLANT_STORE_URL })
      t.after(() => program.kill('SIGKILL'))
      await waitForOutput(program)
      assert.deepEqual(await check(), [0, ''])
      program.kill('SIGTERM')
      assert.equal((await waitForExit(program))[0], 0)
    })
  }

  const skip = (process.env['TEST_REQUIRE_ALL'] !== '1' && 'needs the npm registry') || skipUnlessNode24

  test('installs the Postgres driver with the documented RUN line', { skip }, async () => {
    await runScript(/`RUN (npm install pg)`/.exec(readDocument('docs/deployment.md').text)![1]!, app)
    const names = readdirSync(join(app, 'node_modules')).filter((name) => !name.startsWith('.'))
    assert.ok(names.includes('pg') && names.length <= 20, names.join())
    const url = `postgres://ada@127.0.0.1:${await findFreePort()}/plants`
    const env = { PLANT_STORE_URL: url, PORT: String(await findFreePort()) }
    const migrate = imageStage.replace('--max-semi-space-size=16", "dist/server.js', 'dist/server.js", "--migrate')
    assert.match(String((await waitForExit(startInstruction(migrate, 'CMD', app, env)))[1]), /ECONNREFUSED/)
  })
})
