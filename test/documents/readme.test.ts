import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { DEFAULT_LIMITS } from '../../src/http-server/limits.ts'
import { ERRORS } from '../../src/http/errors.ts'
import type { OperationObject } from '../../src/openapi/description.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { OPERATIONS, RESOURCE_PATHS } from '../../src/operations.ts'
import { DEFAULT_OPTIONS } from '../../src/options.ts'
import { STORE_METHODS } from '../../src/plants/checked-store.ts'
import { formatHelp } from '../../src/standalone/settings/settings.ts'
import { schemeOf, STORE_SCHEMES } from '../../src/stores/open-store.ts'
import { schema } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { openSqlite, skipWithoutSqlite as needsSqlite } from '../support/database/sqlite-file.ts'
import { startChild } from '../support/child-process.ts'
import { connectClient } from '../support/wire/client.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import { waitUntilListening } from '../support/wire/wait-until-listening.ts'
import {
  API_DOCUMENTS,
  findCodeBlocks,
  getCode,
  DOCUMENTS,
  readDocument,
  README,
} from '../support/package/documents.ts'
import { getMountPath, getProtocol, getSkipReason, startExample } from '../support/package/examples.ts'
import { createProject, runScript, ENV_WITHOUT_COVERAGE } from '../support/package/packed-package.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { bearer, getPort, servePlants } from '../support/wire/service.ts'

/** Their examples have tests of their own, which know more: clients.test.ts, frameworks.test.ts and recipes.test.ts. */
const TESTED_ELSEWHERE = ['docs/clients.md', 'docs/frameworks.md', 'docs/recipes.md']

for (const document of [...DOCUMENTS.filter(({ path }) => !TESTED_ELSEWHERE.includes(path)), ...API_DOCUMENTS]) {
  suite(document.path, () => {
    const examples = findCodeBlocks(document, 'ts').filter(({ heading }) => heading === 'Example')
    for (const { code, line } of API_DOCUMENTS.includes(document) ? examples : findCodeBlocks(document, 'js')) {
      // So has this one.
      if (code.includes("'jose'")) continue
      if (code.includes('storeConformance(')) {
        test(`the store at line ${line} conforms`, async (t) => {
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

test('the documents that name the versions of Node name those of package.json', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  for (const path of ['README.md', 'CONTRIBUTING.md', 'docs/stores.md']) {
    assert.ok(readFileSync(path, 'utf8').includes(`\`${engines.node}\``), path)
  }
})

test('the README has a curl session with its real output', { skip: skipWithoutCommand('curl') }, async (t) => {
  const environment = { URL: `http://127.0.0.1:${getPort(await servePlants(t))}`, TOKEN: 'secret' }
  for (const step of getCode('README.md', 'console').split(/^\$ /m).slice(1)) {
    const [command, ...expected] = step.split('\n')
    const printed = await runScript(command!, undefined, environment)
    assert.equal(printed.trimEnd(), expected.join('\n').trimEnd(), command)
  }
})

const DEBUG_BLOCKS = findCodeBlocks(readDocument('CONTRIBUTING.md')).filter(
  ({ heading }) => heading === 'Debug one case',
)

test('the command that debugs one case runs one', async () => {
  const printed = await runScript(DEBUG_BLOCKS[0]!.code.replace('--inspect-brk ', '--test-reporter=tap '))
  assert.match(printed, /^# tests [1-9]\d*\n(?:# suites \d+\n)?# pass 1$/m)
})

test(
  'the commands that show what the service does with a request do',
  { skip: skipWithoutCommand('curl') },
  async (t) => {
    const port = await findFreePort()
    const [command, ...send] = DEBUG_BLOCKS[1]!.code.replace('3000', String(port)).split('\n')
    const env = { ...ENV_WITHOUT_COVERAGE, PORT: String(port) }
    const started = ['-c', `exec env ${command!.replace('--inspect ', '')}`]
    const child = startChild(t, 'sh', started, { env, stdio: 'ignore' })
    await waitUntilListening(port, undefined, () => assert.equal(child.exitCode, null, 'the service has ended'))
    assert.match(await runScript(send.join('\n')), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\[\]$/)
  },
)

/** What the rows of a document's table begin with. */
function readTableColumn(path: string, row: RegExp) {
  return Array.from(readDocument(path).text.matchAll(row), ([, name]) => name!)
}

test('docs/errors.md lists every error, with its remedy', () => {
  const errors = Object.values(ERRORS).map(({ error }) => String(error))
  assert.deepEqual(readTableColumn('docs/errors.md', /^\| (\d{5}) \| [^|]+ \| [^|]+ \|$/gm), errors.sort())
})

test('docs/configuration.md lists every setting with its default, as --help does', () => {
  const [, settings] = /^## Settings$(.*?)^### /ms.exec(readDocument('docs/configuration.md').text)!
  const listed = settings!.matchAll(/^\| `([A-Z_]+)` \| (?:`(.*?)`)? ?\|/gm)
  const told = formatHelp().matchAll(/^ {2}([A-Z_]+)(?:=(.*))?$/gm)
  const [entries, expected] = [listed, told].map((rows) => Array.from(rows, ([, name, preset]) => [name, preset]))
  assert.deepEqual(entries, expected)
})

suite('the default of each option that is a limit stands in the documents, and in its doc comment', () => {
  const places: readonly [document: string, source: string, presets: object][] = [
    ['docs/embedding.md', 'src/http-server/limits.ts', DEFAULT_LIMITS],
    ['README.md', 'src/options.ts', DEFAULT_OPTIONS],
  ]
  for (const [document, source, presets] of places) {
    const [{ text }, comments] = [readDocument(document), readFileSync(source, 'utf8')]
    for (const [name, preset] of Object.entries(presets) as [string, number][]) {
      const digits = preset.toLocaleString('en')
      const row = `| \`${name}\` | ${preset === Infinity ? 'none' : digits} |`
      test(`${document}: ${row}`, () => assert.ok(text.includes(`\n${row}`)))
      const comment = `@default ${preset === Infinity ? preset : digits.replaceAll(',', '_')}`
      test(`${source}: ${comment}`, () => assert.match(comments, RegExp(`${comment}\\s+\\*/\n  readonly ${name}\\?:`)))
    }
  }
})

test('the README lists every operation', () => {
  const listed = readTableColumn('README.md', /^\| `([A-Z]+ \/\S*)` \|/gm)
  const operations = RESOURCE_PATHS.flatMap((path) => Object.keys(OPERATIONS[path]).map((name) => `${name} ${path}`))
  // HEAD goes without saying.
  assert.deepEqual(listed.sort(), operations.filter((name) => !name.startsWith('HEAD ')).sort())
  const examples = readTableColumn('CONTRIBUTING.md', /^For example `([A-Z]+ \/\S*)`/gm)
  assert.deepEqual(
    examples.map((name) => operations.includes(name)),
    [false],
    'the operation to add is there',
  )
})

test('sentences say what the service does, and what it lacks', () => {
  const described = Object.values(openapi.paths).flatMap((item) => Object.values<OperationObject>(item as never))
  // Such as "List plants", but for HEAD and OPTIONS.
  const verbs = described.flatMap(({ summary }) => /^(\w+) plants?$/.exec(summary)?.[1]?.toLowerCase() ?? [])
  for (const [path, sentence] of [
    ['README.md', /is an HTTP service that .* plants\./],
    ['CHANGELOG.md', /makes a function [^.]* plants\s/],
    ['CONTRIBUTING.md', /src\/operations.ts +create.*/],
    ['docs/configuration.md', /clients with this token can .*/],
    ['src/http/caller.ts', /The access level of a token: .*/],
    ['src/standalone/paths/page/browser/page.html', /An HTTP service that .* plants\./],
  ] as const) {
    const [said] = sentence.exec(readFileSync(path, 'utf8'))!
    for (const verb of verbs) assert.match(said, RegExp(`\\b${verb}s?\\b`), path)
  }
  assert.equal(README.text.includes('changes a plant or reads one'), !('GET' in OPERATIONS['/plants/{id}']))
})

for (const path of ['README.md', 'docs/stores.md']) {
  test(`${path} lists every store`, () => {
    const schemes = STORE_SCHEMES.map(({ example }) => schemeOf(example))
    assert.deepEqual(readTableColumn(path, /^\| \[?`([a-z]+)Store\(/gm), schemes)
  })
}

test('docs/configuration.md lists the URL of every store', () => {
  const [, stores] = /^### Store$(.*?)^### /ms.exec(readDocument('docs/configuration.md').text)!
  for (const { example } of STORE_SCHEMES) assert.ok(stores!.includes(`\n| \`${example}\` |`), example)
})

test('docs/stores.md says what each method of a store does', () => {
  assert.deepEqual(readTableColumn('docs/stores.md', /^\| `(\w+)` \| [^|]*\| [^|]+\|$/gm), Object.keys(STORE_METHODS))
})

test('docs/postgres.md shows the schema', () => {
  assert.equal(getCode('docs/postgres.md', 'sql'), `${schema}\n`)
})

test('docs/sqlite.md shows the schema', { skip: needsSqlite }, (t) => {
  const database = openSqlite(t, ':memory:')
  sqliteStore(database)
  const rows = database.prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL').all()
  const schemas = [...rows.map((row) => (row as { sql: string }).sql), getCode('docs/sqlite.md', 'sql')]
  const [made, shown, ...others] = schemas.map((sql) => sql.replace(/\s+/g, ' ').trim())
  assert.deepEqual([made, others], [shown, []])
})
