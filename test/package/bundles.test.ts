import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { SCRIPT, STYLE } from '../../src/standalone/paths/page/texts.ts'
import { startChild, type Scope } from '../support/child.ts'
import { codeOf } from '../support/package/documents.ts'
import { createProject, UNCOVERED } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'

const WEBPACK = codeOf('docs/deploying.md', 'cjs', 'Bundles')
const WEBPACK_MODULE = WEBPACK.replace("'server.cjs'", "'server.mjs', module: true").replace(
  'mode:',
  'experiments: { outputModule: true }, mode:',
)

/** Commands that bundle the program. */
const COMMANDS = [
  ...codeOf('docs/deploying.md', 'sh', 'Bundles').trim().split('\n'),
  'node webpack.config.cjs',
  'node webpack-module.config.cjs',
]

/** What a command makes. */
function bundleOf(command: string): string {
  const file = /(?:--outfile=|--file )(\S+)/.exec(command)?.[1]
  if (file !== undefined) return file
  if (command.includes('ncc')) return 'ncc/index.js'
  return command.includes('module') ? 'webpack/server.mjs' : 'webpack/server.cjs'
}

/** Installed by `npm run peers`, or with the project. */
const COMMAND_FOLDERS = ['../peers/node_modules/.bin', '../../node_modules/.bin'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

/** Most of an application that mounts the memory store, and that docs/hosts.md names. */
const MAX_BYTES = 80_000

const PROGRAM = 'node_modules/plant-store/dist/server.js'
const APPLICATION = codeOf('docs/host-examples.md', 'js', 'Node core')

/** Makes a bundle of the program, or of an application, in a project of its own, and gives the path of the bundle. */
async function bundle(t: Scope, command: string, entry = PROGRAM): Promise<string> {
  // There is no command of webpack without another package.
  const run = "\nrequire('webpack')(module.exports).run((error) => { if (error) throw error })\n"
  const [webpack, webpackModule] = [WEBPACK, WEBPACK_MODULE].map((config) => config.replace(PROGRAM, entry) + run)
  const listening =
    "process.env.PORT, function () { console.log('listening on http://127.0.0.1:' + this.address().port) }"
  // Without a plugin, rollup finds no packages.
  const application = APPLICATION.replace('a-long-random-token', 'YWRh')
    .replace("'plant-store'", "'./node_modules/plant-store/dist/index.js'")
    .replace('3000', listening)
  const project = await createProject(t, {
    'webpack.config.cjs': webpack!,
    'webpack-module.config.cjs': webpackModule!,
    'package.json': '{}',
    'main.js': application,
  })
  await symlink('../node_modules', join(project, 'node_modules'))
  const PATH = [...COMMAND_FOLDERS, process.env['PATH']].join(':')
  const text = command
    .replace('npx ', '')
    .replace(PROGRAM, entry)
    .replace(/^node /, `'${process.execPath}' `)
  await promisify(execFile)('sh', ['-c', text], { cwd: project, env: { ...UNCOVERED, PATH } })
  return join(project, bundleOf(command))
}

/** Runs a bundle until it serves or ends; gives the URL, or what it said. */
async function start(t: Scope, command: readonly string[], page: '0' | '1'): Promise<string> {
  const env = { PATH: process.env['PATH'], PORT: '0', PLANT_STORE_TOKENS: 'ada:YWRh', PLANT_STORE_PAGE: page }
  const child = startChild(t, command[0]!, command.slice(1), { env })
  const ended = once(child, 'close')
  let said = ''
  child.stderr!.on('data', (data) => (said += String(data)))
  const [line] = (await Promise.race([once(child.stdout!, 'data'), ended.then(() => [said])])) as [Buffer | string]
  return /listening on (\S+)/.exec(String(line))?.[1] ?? said
}

async function servesThePage(url: string): Promise<void> {
  const served = ['/page.js', '/page.css'].map(async (path) => (await fetch(url + path)).text())
  assert.deepEqual(await Promise.all(served), [SCRIPT, STYLE])
  assert.match(await (await fetch(url)).text(), /<dd>memory<\/dd>/)
}

for (const command of COMMANDS) {
  suite(command, { skip: skipWithoutPeers() }, () => {
    test('makes a program that serves, with the page and without', async (t) => {
      const path = await bundle(t, command)
      const bare = await start(t, [process.execPath, path], '0')
      assert.equal((await fetch(`${bare}/plants`, { headers: { Authorization: 'Bearer YWRh' } })).status, 200)
      assert.equal((await fetch(bare)).status, 404)

      await servesThePage(await start(t, [process.execPath, path], '1'))
    })

    test('makes an application of no more than it uses', async (t) => {
      const path = await bundle(t, command, './main.js')
      const url = await start(t, [process.execPath, path], '0')
      assert.equal((await fetch(`${url}/plants`, { headers: { Authorization: 'Bearer YWRh' } })).status, 200)
      const text = readFileSync(path, 'utf8')
      assert.doesNotMatch(text, /PRAGMA|INSERT INTO|PLANT_STORE_/)
      assert.ok(text.length < MAX_BYTES, `${text.length} bytes`)
    })
  })
}
