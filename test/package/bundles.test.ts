import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { SCRIPT, STYLE } from '../../src/standalone/paths/page/texts.ts'
import { startChild, waitForOutput, type CleanupScope } from '../support/child-process.ts'
import { getCode } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'

// The webpack command is in a separate package, so webpack is called through its API.
const WEBPACK = `${getCode('docs/deployment.md', 'cjs', 'Bundling')}
require('webpack')(module.exports).run((error) => { if (error) throw error })`
const MODULE = 'experiments: { outputModule: true }, mode:'
const WEBPACK_MODULE = WEBPACK.replace("'server.cjs'", "'server.mjs', module: true").replace('mode:', MODULE)

/** Commands that bundle the standalone server. */
const COMMANDS = [
  ...getCode('docs/deployment.md', 'sh', 'Bundling').trim().split('\n'),
  'node webpack.config.cjs # makes webpack/server.cjs',
  'node webpack-module.config.cjs # makes webpack/server.mjs',
]

/** The maximum size of an application with the memory store, as stated in docs/embedding.md. */
const MAX_BYTES = 95_000

const PROGRAM = 'node_modules/plant-store/dist/server.js'
// Rollup doesn't resolve packages without a plugin.
const APPLICATION = getCode('docs/frameworks.md', 'js', 'Node core')
  .replace('a-long-random-token', 'YWRh')
  .replace("'plant-store'", "'./node_modules/plant-store/dist/index.js'")
  .replace('3000', "0, function () { console.log('listening on http://127.0.0.1:' + this.address().port) }")

/** Bundles the standalone server or an application in a new project. Returns the path of the bundle. */
async function createBundle(t: CleanupScope, command: string, entry = PROGRAM): Promise<string> {
  const project = await createProject(t, {
    'webpack.config.cjs': WEBPACK.replace(PROGRAM, entry),
    'webpack-module.config.cjs': WEBPACK_MODULE.replace(PROGRAM, entry),
    'package.json': '{}',
    'main.js': APPLICATION,
  })
  await symlink('../node_modules', join(project, 'node_modules'))
  await runScript(command.replace('npx ', '').replace(PROGRAM, entry), project)
  return join(project, /\w+\/server\.[cm]js/.exec(command)?.[0] ?? 'ncc/index.js')
}

/** Starts a bundle, waits until it is listening, and returns its URL. */
async function startBundle(t: CleanupScope, path: string, page: '0' | '1'): Promise<string> {
  const env = { PORT: '0', PLANT_STORE_TOKENS: 'ada:YWRh', PLANT_STORE_PAGE: page }
  const child = startChild(t, process.execPath, [path], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const line = await waitForOutput(child)
  return /listening on (\S+)/.exec(line)![1]!
}

function fetchPlants(url: string): Promise<Response> {
  return fetch(`${url}/plants`, { headers: { Authorization: 'Bearer YWRh' } })
}

for (const command of COMMANDS) {
  suite(command, { skip: skipWithoutPeers }, () => {
    test('creates a working bundle of the standalone server', async (t) => {
      const path = await createBundle(t, command)
      const bare = await startBundle(t, path, '0')
      assert.equal((await fetchPlants(bare)).status, 200)
      assert.equal((await fetch(bare)).status, 404)

      const url = await startBundle(t, path, '1')
      const served = ['/page.js', '/page.css'].map(async (path) => (await fetch(url + path)).text())
      assert.deepEqual(await Promise.all(served), [SCRIPT, STYLE])
      assert.match(await (await fetch(url)).text(), /<dd>memory<\/dd>/)
    })

    test('excludes unused stores and settings from the bundle of an application', async (t) => {
      const path = await createBundle(t, command, './main.js')
      assert.equal((await fetchPlants(await startBundle(t, path, '0'))).status, 200)
      const text = readFileSync(path, 'utf8')
      assert.doesNotMatch(text, /PRAGMA|INSERT INTO|PLANT_STORE_/)
      assert.ok(text.length < MAX_BYTES, `${text.length} bytes`)
    })
  })
}
