import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { DEFAULT_LIMITS } from '../../src/http-server/limits.ts'
import { DEFAULT_OPTIONS } from '../../src/options.ts'
import { STORE_METHODS } from '../../src/plants/checked-store.ts'
import { formatHelp } from '../../src/standalone/settings/settings.ts'
import { schemeOf, STORE_SCHEMES } from '../../src/stores/open-store.ts'
import { schema } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { openSqlite, skipWithoutSqlite } from '../support/database/sqlite-file.ts'
import { startChild } from '../support/child-process.ts'
import { connectClient } from '../support/wire/client.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import { waitUntilListening } from '../support/wire/wait-until-listening.ts'
import {
  API_DOCUMENTS,
  DOCUMENTS,
  findCodeBlocks,
  getCode,
  readDocument,
  readTableColumn,
} from '../support/package/documents.ts'
import { getMountPath, getProtocol, getSkipReason, startExample } from '../support/package/examples.ts'
import { createProject, packPackage, runScript, ENV_WITHOUT_COVERAGE } from '../support/package/packed-package.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { bearer, getPort, post, sendToPort, servePlants } from '../support/wire/service.ts'

/** clients.test.ts, frameworks.test.ts and recipes.test.ts run the examples of these pages more thoroughly. */
const TESTED_ELSEWHERE = ['docs/clients.md', 'docs/frameworks.md', 'docs/recipes.md']

/** The examples with this heading need more than a token. test/package/authentication.test.ts runs them. */
const SESSIONS = 'Cookies and sessions'

for (const document of [...DOCUMENTS.filter(({ path }) => !TESTED_ELSEWHERE.includes(path)), ...API_DOCUMENTS]) {
  suite(document.path, () => {
    const examples = findCodeBlocks(document, 'ts').filter(({ heading }) => heading === 'Example')
    const blocks = findCodeBlocks(document, 'js').filter(({ heading }) => heading !== SESSIONS)
    for (const { code, line } of API_DOCUMENTS.includes(document) ? examples : blocks) {
      if (code.includes("'plant-store/client'")) {
        test(`the client at line ${line} creates, lists and deletes a plant`, async (t) => {
          const url = `http://127.0.0.1:${getPort(await servePlants(t))}/`
          const program = code.replace('https://plants.example/', url)
          const project = await createProject(t, { 'main.mjs': program })
          const printed = await runScript('node main.mjs', project, { URL: url, TOKEN: 'ada' })
          assert.match(printed, /^9007199254740993n Fern\n$/)
        })
      } else if (code.includes('storeConformance(')) {
        test(`the store at line ${line} passes the conformance suite`, async (t) => {
          await runScript('node store.test.mjs', await createProject(t, { 'store.test.mjs': code }))
        })
      } else {
        test(`the example at line ${line} serves plants`, { skip: getSkipReason(code) }, async (t) => {
          const { port } = await startExample(t, code)
          const client = connectClient(getProtocol(code), port)
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

for (const path of ['README.md', 'CONTRIBUTING.md', 'docs/stores.md']) {
  test(`${path} states the Node versions that package.json requires`, () => {
    const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
    assert.ok(readDocument(path).text.includes(`\`${engines.node}\``))
  })
}

test(
  'the curl commands in the README print the output shown there',
  { skip: skipWithoutCommand('curl') },
  async (t) => {
    const env = { URL: `http://127.0.0.1:${getPort(await servePlants(t))}`, TOKEN: 'secret' }
    const output = await runScript(getCode('README.md', 'sh', 'Quick start', 1), undefined, env)
    assert.equal(output, getCode('README.md', 'text'))
  },
)

test('the commands in the README create a token and start the server', { skip: skipWithoutSqlite }, async (t) => {
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

test('systemd accepts the unit in the README', { skip: skipWithoutCommand('systemd-analyze') }, (t) => {
  const path = join(createTempDirectory(t), 'plant-store.service')
  // The command must exist.
  writeFileSync(path, getCode('README.md', 'ini').replace('/usr/bin/node', process.execPath))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' })
  assert.doesNotMatch(stderr, /plant-store/)
  assert.equal(status, 0)
})

const DEBUG_BLOCKS = findCodeBlocks(readDocument('CONTRIBUTING.md')).filter(({ heading }) => heading === 'Debug a test')

test('the command in CONTRIBUTING.md debugs a single test', async () => {
  const printed = await runScript(DEBUG_BLOCKS[0]!.code.replace('--inspect-brk ', '--test-reporter=tap '))
  assert.match(printed, /^# tests [1-9]\d*\n(?:# suites \d+\n)?# pass 1$/m)
})

test(
  'the commands in CONTRIBUTING.md start the service from source and send a request',
  { skip: skipWithoutCommand('curl') },
  async (t) => {
    const port = await findFreePort()
    const [command, ...send] = DEBUG_BLOCKS[1]!.code.replace('3000', String(port)).split('\n')
    const env = { ...ENV_WITHOUT_COVERAGE, PORT: String(port) }
    const started = ['-c', `exec env ${command!.replace('--inspect ', '')}`]
    const child = startChild(t, 'sh', started, { env, stdio: 'ignore' })
    await waitUntilListening(port, undefined, () => assert.equal(child.exitCode, null, 'the service exited'))
    assert.match(await runScript(send.join('\n')), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\[\]$/)
  },
)

test('docs/configuration.md lists the same settings and defaults as --help', () => {
  const [, settings] = /^## Settings$(.*?)^### /ms.exec(readDocument('docs/configuration.md').text)!
  const listed = settings!.matchAll(/^\| `([A-Z_]+)` \| (?:`(.*?)`)? ?\|/gm)
  const printed = formatHelp().matchAll(/^ {2}([A-Z_]+)(?:=(.*))?$/gm)
  const [entries, expected] = [listed, printed].map((rows) =>
    Array.from(rows, ([, name, defaultValue]) => [name, defaultValue]),
  )
  assert.deepEqual(entries, expected)
})

suite('docs and doc comments state the actual defaults:', () => {
  const places: readonly [document: string, source: string, defaults: object][] = [
    ['docs/embedding.md', 'src/http-server/limits.ts', DEFAULT_LIMITS],
    ['README.md', 'src/options.ts', DEFAULT_OPTIONS],
  ]
  for (const [document, source, defaults] of places) {
    const [{ text }, comments] = [readDocument(document), readFileSync(source, 'utf8')]
    for (const [name, value] of Object.entries(defaults) as [string, number][]) {
      const digits = value.toLocaleString('en')
      const row = `| \`${name}\` | ${value === Infinity ? 'none' : digits} |`
      test(`${document}: ${row}`, () => assert.ok(text.includes(`\n${row}`)))
      const comment = `@default ${value === Infinity ? value : digits.replaceAll(',', '_')}`
      test(`${source}: ${comment}`, () => assert.match(comments, RegExp(`${comment}\\s+\\*/\n  readonly ${name}\\?:`)))
    }
  }
})

test('docs/stores.md lists every store', () => {
  const schemes = STORE_SCHEMES.map(({ example }) => schemeOf(example))
  assert.deepEqual(readTableColumn('docs/stores.md', /^\| \[?`([a-z]+)Store\(/gm), schemes)
})

test('docs/configuration.md lists the URL of every store', () => {
  const [, stores] = /^### Store$(.*?)^### /ms.exec(readDocument('docs/configuration.md').text)!
  for (const { example } of STORE_SCHEMES) assert.ok(stores!.includes(`\n| \`${example}\` |`), example)
})

test('docs/stores.md describes every method of a store', () => {
  assert.deepEqual(readTableColumn('docs/stores.md', /^\| `(\w+)` \| [^|]*\| [^|]+\|$/gm), Object.keys(STORE_METHODS))
})

test('docs/postgres.md shows the actual schema', () => {
  assert.equal(getCode('docs/postgres.md', 'sql'), `${schema}\n`)
})

test('docs/sqlite.md shows the actual schema', { skip: skipWithoutSqlite }, (t) => {
  const database = openSqlite(t, ':memory:')
  sqliteStore(database)
  const rows = database.prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL').all()
  const schemas = [...rows.map((row) => (row as { sql: string }).sql), getCode('docs/sqlite.md', 'sql')]
  const [made, shown, ...others] = schemas.map((sql) => sql.replace(/\s+/g, ' ').trim())
  assert.deepEqual([made, others], [shown, []])
})
