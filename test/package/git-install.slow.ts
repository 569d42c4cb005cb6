import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runScript } from '../support/packed-package.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const OFFLINE = '--offline --no-audit --no-fund'

/** The packages that the build needs, as stubs that refer to the installed ones, so that npm downloads nothing. */
const TOOLS: Readonly<Record<string, string>> = {
  'typescript/package.json': '{"name":"typescript","version":"1.0.0"}',
  'typescript/index.js': `module.exports = require('${MODULES}/typescript')`,
  'typescript/bin/tsc': `#!/usr/bin/env node\nrequire('${MODULES}/typescript/lib/tsc.js')`,
  '@types/node/package.json': '{"name":"@types/node","version":"1.0.0"}',
  '@types/node/index.d.ts': `/// <reference path="${MODULES}/@types/node/index.d.ts" />`,
}

/** Creates a checkout of the sources without installed dependencies. */
async function createCheckout(t: TestContext): Promise<string> {
  const checkout = join(createTempDirectory(t), 'checkout')
  for (const name of ['src', 'tsconfig.json', 'README.md']) {
    await cp(join(ROOT, name), join(checkout, name), { recursive: true })
  }
  for (const [path, text] of Object.entries(TOOLS)) {
    await mkdir(dirname(join(checkout, 'tools', path)), { recursive: true })
    await writeFile(join(checkout, 'tools', path), text, { mode: 0o755 })
  }
  const devDependencies = { typescript: 'file:tools/typescript', '@types/node': 'file:tools/@types/node' }
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as object
  await writeFile(join(checkout, 'package.json'), JSON.stringify({ ...manifest, devDependencies }))
  await writeFile(join(checkout, '.gitignore'), 'node_modules/\ndist/\n')
  return checkout
}

suite('the package in the git repository', { skip: skipWithoutCommand('git') }, () => {
  test('is built when npm installs it from git', async (t) => {
    const checkout = await createCheckout(t)
    const identity = '-c user.name=ada -c user.email=ada@example.com'
    await runScript(`git init -q && git add . && git ${identity} commit -q -m Plants`, checkout)
    const project = createTempDirectory(t)
    await writeFile(join(project, 'package.json'), '{"private":true}')
    // npm 12 installs from git only if that's allowed; older versions ignore the option.
    await runScript(`npm install ${OFFLINE} --allow-git=all 'git+file://${checkout}'`, project)
    const code = 'Promise.all([import("plant-store"), import("plant-store/server")]).then(() => console.log("loaded"))'
    assert.equal(await runScript(`node --eval '${code}'`, project), 'loaded\n')
  })

  test('is not built by npm install --omit=dev in a checkout, which succeeds', async (t) => {
    const checkout = await createCheckout(t)
    await runScript(`npm install --omit=dev ${OFFLINE}`, checkout)
    assert.equal(existsSync(join(checkout, 'dist')), false)
  })
})
