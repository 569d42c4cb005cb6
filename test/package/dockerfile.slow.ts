import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { waitForOutput } from '../support/child-process.ts'
import { getCode } from '../support/documents.ts'
import { ENV_WITHOUT_COVERAGE, packPackage, runScript } from '../support/packed-package.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { findFreePort } from '../support/find-free-port.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [buildStage, imageStage] = readFileSync(join(root, 'Dockerfile'), 'utf8').split('\n\n') as [string, string]

const packageDockerfile = getCode('docs/deployment.md', 'dockerfile')

/** Starts the command of a Dockerfile instruction. */
function startInstruction(stage: string, instruction: string, cwd: string, env: NodeJS.ProcessEnv): ChildProcess {
  const [, json] = new RegExp(`^${instruction} (.*)$`, 'm').exec(stage)!
  const [command, ...args] = JSON.parse(json!) as [string, ...string[]]
  const [, variables] = /^ENV (.*)$/m.exec(stage)!
  const set = Object.fromEntries(variables!.split(' ').map((entry) => entry.split(/=(.*)/))) as Record<string, string>
  // The folders of the image are in a local folder here.
  const adapted = args.map((arg) => arg.replace(/(?<==)\/(?:app\/)?/, `${cwd}/`))
  return spawn(command, adapted, { cwd, env: { PATH: ENV_WITHOUT_COVERAGE['PATH'], ...set, ...env } })
}

/** Resolves with the exit status of a process and its stderr. */
async function waitForExit(child: ChildProcess) {
  const [stderr, ended] = await Promise.all([text(child.stderr!), once(child, 'exit') as Promise<unknown[]>])
  return [ended[0], stderr]
}

// On Node 26, --permission also needs --allow-net; older versions have no --permission.
const skip = !process.version.startsWith('v24.') && 'the image has Node 24'

suite('the Dockerfile', { skip }, () => {
  const folder = createTempDirectory({ after })
  const app = join(folder, 'app')

  before(async () => {
    const [all, ...allowed] = readFileSync(join(root, '.dockerignore'), 'utf8').trimEnd().split('\n')
    assert.equal(all, '*')
    const built = join(folder, 'build')
    for (const name of allowed.map((line) => line.slice(1))) {
      cpSync(join(root, name), join(built, name), { recursive: true })
    }
    // Instead of npm ci.
    symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'))
    await runScript(/^RUN (npm run build.*)$/m.exec(buildStage)![1]!, built)
    for (const [, from, to] of imageStage.matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S*)$/gm)) {
      cpSync(join(built, from!), join(app, to! || from!), { recursive: true })
    }
  })

  for (const [where, stage, getFolder] of [
    ['in the repository', imageStage, () => app],
    ['in docs/deployment.md', packageDockerfile, async () => (await packPackage()).folder],
  ] as const) {
    test(`${where} starts a server that passes its health check and exits with 0 on SIGTERM`, async (t) => {
      const cwd = await getFolder()
      const PORT = String(await findFreePort())
      const check = () => waitForExit(startInstruction(stage, 'HEALTHCHECK CMD', cwd, { PORT }))
      assert.equal((await check())[0], 1)
      for (const name of ['data', 'run/secrets']) mkdirSync(join(cwd, name), { recursive: true })
      const PLANT_STORE_TOKENS_FILE = join(cwd, 'run/secrets/tokens')
      writeFileSync(PLANT_STORE_TOKENS_FILE, 'ada:YWRh\n')
      const PLANT_STORE_URL = `sqlite:${join(cwd, 'data/plants.db')}`
      const server = startInstruction(stage, 'CMD', cwd, { PORT, PLANT_STORE_TOKENS_FILE, PLANT_STORE_URL })
      t.after(() => server.kill('SIGKILL'))
      await waitForOutput(server)
      assert.deepEqual(await check(), [0, ''])
      server.kill('SIGTERM')
      assert.equal((await waitForExit(server))[0], 0)
    })
  }
})
