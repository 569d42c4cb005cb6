import assert from 'node:assert/strict'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runScript } from '../support/package/packed-package.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const OFFLINE = '--offline --no-audit --no-fund'

/**
 * The packages that the build needs. They are stubs that refer to the installed ones, so that npm downloads nothing.
 */
const TOOLS: Readonly<Record<string, readonly [manifest: object, file: string, text: string]>> = {
  typescript: [
    { bin: { tsc: 'typescript.js' }, main: 'typescript.js' },
    'typescript.js',
    `#!/usr/bin/env node
    if (require.main === module) require('${MODULES}/typescript/lib/tsc.js')
    else module.exports = require('${MODULES}/typescript')`,
  ],
  esbuild: [{}, 'bin/esbuild', `#!/bin/sh\nexec '${MODULES}/esbuild/bin/esbuild' "$@"`],
  '@types/node': [{}, 'index.d.ts', `/// <reference path="${MODULES}/@types/node/index.d.ts" />`],
}

/** Creates a checkout of the sources without installed dependencies. */
async function createCheckout(t: TestContext): Promise<string> {
  const checkout = join(createTempDirectory(t), 'checkout')
  for (const name of ['src', 'tsconfig.json', 'README.md']) {
    await cp(join(ROOT, name), join(checkout, name), { recursive: true })
  }
  const devDependencies: Record<string, string> = {}
  for (const [name, [members, file, text]] of Object.entries(TOOLS)) {
    const folder = join(checkout, 'tools', name)
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0', ...members }))
    await writeFile(join(folder, file), text, { mode: 0o755 })
    devDependencies[name] = `file:tools/${name}`
  }
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as object
  await writeFile(join(checkout, 'package.json'), JSON.stringify({ ...manifest, devDependencies }))
  await writeFile(join(checkout, '.gitignore'), 'node_modules/\ndist/\n')
  return checkout
}

suite('the package in the git repository', { skip: skipWithoutCommand('git') }, () => {
  test('the package is built when npm installs it from git', async (t) => {
    const checkout = await createCheckout(t)
    const identity = '-c user.name=ada -c user.email=ada@example.com'
    await runScript(`git init -q && git add . && git ${identity} commit -q -m Plants`, checkout)
    const project = createTempDirectory(t)
    await writeFile(join(project, 'package.json'), '{"private":true}')
    // npm 12 installs from git only if that's allowed; older versions ignore the option.
    await runScript(`npm install ${OFFLINE} --allow-git=all 'git+file://${checkout}'`, project)
    const code = `Promise.all(["plant-store", "plant-store/sqlite", "plant-store/server"].map((name) => import(name))).then(
      ([core, sqlite, server]) => console.log(Object.keys({ ...core, ...sqlite, ...server }).sort().join()))`
    const exported = 'MAX_PAGE,MAX_PAGE_BYTES,StoreUnavailableError,createPlantStore,createServer,memoryStore,openapi'
    assert.equal(await runScript(`node --eval '${code}'`, project), `${exported},sqliteStore\n`)
  })

  for (const [name, command, expected] of [
    ['is built', 'install', 'index.js\n'],
    ['is not built', 'ci', ''],
    ['is not built, and the installation succeeds', 'install --omit=dev', ''],
  ] as const) {
    test(`${name} by npm ${command} in a checkout`, async (t) => {
      const checkout = await createCheckout(t)
      if (command === 'ci') await runScript(`npm install --package-lock-only ${OFFLINE}`, checkout)
      await runScript(`npm ${command} ${OFFLINE}`, checkout)
      assert.equal(await runScript('ls dist/index.js 2> /dev/null | xargs -r basename', checkout), expected)
    })
  }

  test('npm install --omit=dev succeeds in a folder that contains only package.json', async (t) => {
    const project = createTempDirectory(t)
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as object
    await writeFile(join(project, 'package.json'), JSON.stringify({ ...manifest, devDependencies: {} }))
    await runScript(`npm install --omit=dev ${OFFLINE}`, project)
  })
})
