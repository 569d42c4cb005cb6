/** Runs the programs and commands of the docs, and compares what they state with the code. */
import assert from 'node:assert/strict'
import { cpSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { ERRORS } from '../../src/http/errors.ts'
import { LIMITS } from '../../src/http-server/create-server.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { DEFAULT_OPTIONS } from '../../src/options.ts'
import { VARIABLES } from '../../src/standalone/settings/table.ts'
import { startChild } from '../support/child-process.ts'
import { DOCUMENTS, findCodeBlocks, getCode, readDocument } from '../support/documents.ts'
import { getMountPath, getProtocol, getSkipReason, startExample } from '../support/examples.ts'
import { createProject, packPackage, runScript, ENV_WITHOUT_COVERAGE } from '../support/packed-package.ts'
import { skipWithoutCommand, skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { connectClient } from '../support/client.ts'
import { findFreePort } from '../support/find-free-port.ts'
import { bearer, getPort, post, sendToPort, servePlants } from '../support/service.ts'
import { waitUntilListening } from '../support/wait-until-listening.ts'

/** Returns the first group of each match in a document. */
function readTableColumn(path: string, row: RegExp): string[] {
  return Array.from(readDocument(path).text.matchAll(row), ([, name]) => name!)
}

/** Other tests run the examples of these pages more thoroughly. */
const TESTED_ELSEWHERE = ['docs/clients.md', 'docs/frameworks.md', 'docs/recipes.md']

/** This example needs more than a token. authentication.slow.ts runs it. */
const SESSIONS = 'Cookies and sessions'

for (const document of DOCUMENTS.filter(({ path }) => !TESTED_ELSEWHERE.includes(path))) {
  suite(document.path, () => {
    const blocks = findCodeBlocks(document, 'js').filter(({ heading }) => heading !== SESSIONS)
    for (const { code, line } of blocks) {
      if (code.includes("'plant-store/client'")) {
        test(`the client at line ${line} creates, lists and deletes a plant`, async (t) => {
          const URL = `http://127.0.0.1:${getPort(await servePlants(t))}/`
          const project = await createProject(t, { 'main.mjs': code })
          assert.match(await runScript('node main.mjs', project, { URL, TOKEN: 'ada' }), /^9007199254740993n Fern\n$/)
        })
      } else if (code.includes('storeConformance(')) {
        test(`the store at line ${line} passes the conformance suite`, async (t) => {
          await runScript('node store.test.mjs', await createProject(t, { 'store.test.mjs': code }))
        })
      } else {
        test(`the example at line ${line} serves plants`, { skip: getSkipReason(code) }, async (t) => {
          const client = connectClient(getProtocol(code), (await startExample(t, code)).port)
          t.after(() => client.close())
          const request = { method: 'GET', path: `${getMountPath(code)}/plants`, fields: bearer('a-long-random-token') }
          const { status, body } = await client.send(request)
          assert.deepEqual([status, body], [200, '[]'])
          assert.equal((await client.send({ ...request, fields: [] })).status, 401)
        })
      }
    }
  })
}

suite('the README', () => {
  test('shows the output of its curl commands', { skip: skipWithoutCommand('curl') }, async (t) => {
    const env = { URL: `http://127.0.0.1:${getPort(await servePlants(t))}`, TOKEN: 'secret' }
    const output = await runScript(getCode('README.md', 'sh', 'Quick start', 1), undefined, env)
    assert.equal(output, getCode('README.md', 'text'))
  })

  test('has commands that create a token and start the server', { skip: skipWithoutSqlite }, async (t) => {
    const cwd = createTempDirectory(t)
    cpSync(join((await packPackage()).folder, 'node_modules/plant-store/dist'), join(cwd, 'dist'), { recursive: true })
    const [, createToken, start] = getCode('README.md', 'sh', 'Run it in production').split('\n')
    await runScript(createToken!, cwd)
    const tokensPath = join(cwd, 'tokens')
    assert.equal(statSync(tokensPath).mode & 0o777, 0o600)
    const [, token] = /^ada:(.*)\n$/.exec(readFileSync(tokensPath, 'utf8'))!
    const port = await findFreePort()
    const env = { ...ENV_WITHOUT_COVERAGE, PORT: String(port) }
    const child = startChild(t, 'sh', ['-c', `exec env ${start!}`], { cwd, env, stdio: 'ignore' })
    await waitUntilListening(port, undefined, () => assert.equal(child.exitCode, null, 'the server exited'))
    assert.equal((await sendToPort(port, post(token!, '{"id":1,"name":"Fern"}'))).status, 200)
    assert.ok(existsSync(join(cwd, 'plants.db')))
  })

  test('lists every operation', () => {
    const listed = readTableColumn('README.md', /^\| `([A-Z]+ \/\S*)` \|/gm)
    const operations = Object.entries(OPERATIONS).flatMap(([path, methods]) =>
      Object.keys(methods).map((name) => `${name} ${path}`),
    )
    // Every GET also supports HEAD.
    assert.deepEqual(listed.sort(), operations.filter((name) => !name.startsWith('HEAD ')).sort())
  })
})

suite('the docs match the code:', () => {
  for (const path of ['README.md', 'CONTRIBUTING.md']) {
    test(`the Node versions in ${path}`, () => {
      const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
      assert.ok(readDocument(path).text.includes(`\`${engines.node}\``))
    })
  }

  test('the error codes in docs/errors.md', () => {
    const listed = readTableColumn('docs/errors.md', /^\| (\d{5}) \| [^|]+ \| [^|]+ \|$/gm)
    assert.deepEqual(
      listed,
      Object.values(ERRORS)
        .map(({ error }) => String(error))
        .sort(),
    )
  })

  test('the settings in docs/configuration.md', () => {
    const [settings] = /^## Settings$.*?^##+ /ms.exec(readDocument('docs/configuration.md').text)!
    const listed = settings.matchAll(/^\| `([A-Z_]+)` \| (?:`(.*?)`)? ?\|/gm)
    const documented = Array.from(listed, ([, name, value]) => [name, value])
    const actual = Object.values(VARIABLES).map(({ name, defaultValue }) => [name, defaultValue])
    assert.deepEqual(documented.sort(), actual.sort())
  })

  const limits = Object.entries(LIMITS).map(([name, { defaultValue }]) => [name, defaultValue] as const)
  for (const [document, source, defaults] of [
    ['docs/embedding.md', 'src/http-server/create-server.ts', limits],
    ['README.md', 'src/options.ts', Object.entries(DEFAULT_OPTIONS)],
  ] as const) {
    test(`the defaults in ${document} and in the doc comments of ${source}`, () => {
      const [{ text }, comments] = [readDocument(document), readFileSync(source, 'utf8')]
      for (const [name, value] of defaults) {
        const digits = value.toLocaleString('en')
        assert.ok(text.includes(`\n| \`${name}\` | ${value === Infinity ? 'none' : digits} |`), name)
        const comment = `@default ${value === Infinity ? value : digits.replaceAll(',', '_')}`
        assert.match(comments, RegExp(`${comment}\\s+\\*/\n  readonly ${name}\\?:`))
      }
    })
  }
})
