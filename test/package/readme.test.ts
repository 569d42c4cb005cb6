import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ERRORS } from '../../src/http/errors.ts'
import { helpText } from '../../src/standalone/settings.ts'
import { schema } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { connectTo } from '../support/client.ts'
import { blocksOf, DOCUMENTS, readDocument, README } from '../support/documents.ts'
import { bearer, portOf, servePlants } from '../support/service.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const POSTGRES_URL = process.env['TEST_POSTGRES_URL']
const hasSqlite = isBuiltin('node:sqlite')
const hasCurl = await run('curl', ['--version']).then(
  () => true,
  () => false,
)

const PRELOAD = ['--import', 'tsx', '--input-type=module']

const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  exports: Readonly<Record<string, { readonly default: string }>>
}

/** The code with the sources in place of the package. */
function fromSources(code: string): string {
  return code.replace(/'plant-store(\/\w+)?'/g, (_, path = '') => {
    const built = exports[`.${path}`]!.default
    return `'${built.replace('/dist/', '/src/').replace(/js$/, 'ts')}'`
  })
}

function skipped(code: string): string | false {
  if (code.includes('sqliteStore(') && !hasSqlite) return 'this Node has no node:sqlite'
  return code.includes('postgres://') && POSTGRES_URL === undefined && 'TEST_POSTGRES_URL is not set'
}

function protocolOf(code: string): 'http' | 'https' | 'h2' {
  if (code.includes("'node:http2'")) return 'h2'
  return code.includes("'node:https'") ? 'https' : 'http'
}

/** Runs an example until it listens. */
async function startExample(t: TestContext, code: string): Promise<number> {
  const program = fromSources(code)
    .replace('3000', '0')
    .replace('plants.db', ':memory:')
    .replace('postgres://user:password@host/database', POSTGRES_URL ?? '')
    .replaceAll("'localhost.", "'test/support/localhost.")
  const child = spawn(
    process.execPath,
    [...PRELOAD, '--import', './test/support/report-listening.ts', '--eval', program],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    },
  )
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill()
    await ended
  })
  const [port] = (await Promise.race([once(child, 'message'), ended.then(() => [])])) as [number?]
  assert.ok(port !== undefined, 'the example ends without listening')
  return port
}

for (const document of DOCUMENTS) {
  suite(document.path, () => {
    for (const { code, line } of blocksOf(document, 'js')) {
      if (code.includes('storeConformance(')) {
        test(`the store at line ${line} conforms`, async () => {
          const environment = { ...process.env, NODE_TEST_CONTEXT: undefined }
          await run(process.execPath, [...PRELOAD, '--eval', fromSources(code)], { cwd: root, env: environment })
        })
      } else {
        test(`the example at line ${line} serves plants`, { skip: skipped(code) }, async (t) => {
          const port = await startExample(t, code)
          const client = connectTo(protocolOf(code), port)
          t.after(() => client.close())
          const prefix = /'(\/api[^']*)'/.exec(code)?.[1] ?? ''
          const request = { method: 'GET', path: `${prefix}/plants`, fields: bearer('a-long-random-token') }
          const { status, body } = await client.send(request)
          assert.deepEqual([status, body], [200, '[]'])
          assert.equal((await client.send({ ...request, fields: [] })).status, 401)
        })
      }
    }
  })
}

test('the README has a curl session with its real output', { skip: !hasCurl && 'curl is not installed' }, async (t) => {
  const server = await servePlants(t)
  const environment = { ...process.env, URL: `http://127.0.0.1:${portOf(server)}`, TOKEN: 'secret' }
  const [session] = blocksOf(README, 'console')
  for (const step of session!.code.split(/^\$ /m).slice(1)) {
    const [command, ...expected] = step.split('\n')
    const { stdout } = await run('sh', ['-c', command!], { env: environment })
    assert.equal(stdout.trimEnd(), expected.join('\n').trimEnd(), command)
  }
})

test('the README lists every error', () => {
  const listed = [...README.text.matchAll(/^\| (\d{5}) \|/gm)].map(([, error]) => Number(error))
  assert.deepEqual(
    listed,
    Object.values(ERRORS)
      .map(({ error }) => error)
      .sort(),
  )
})

test('the README lists every setting with its default, as --help does', () => {
  const listed = [...README.text.matchAll(/^\| `([A-Z_]+)` \| (?:`(.*?)`)? ?\|/gm)]
  const told = [...helpText().matchAll(/^ {2}([A-Z_]+)(?:=(.*))?$/gm)]
  assert.deepEqual(
    listed.map(([, name, preset]) => [name, preset]),
    told.map(([, name, preset]) => [name, preset]),
  )
})

test('docs/running.md lists every event of the log', () => {
  const { text } = readDocument('docs/running.md')
  const listed = [...text.matchAll(/^\| `([a-z][a-z-]*)` \|/gm)].map(([, event]) => event)
  const logged = (readdirSync(`${root}/src`, { recursive: true }) as string[])
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => [...readFileSync(`${root}/src/${path}`, 'utf8').matchAll(/\blog\('([a-z-]+)'/g)])
    .map(([, event]) => event)
  assert.deepEqual(listed.sort(), [...new Set(logged)].sort())
})

test('docs/postgres.md shows the schema', () => {
  const [sql] = blocksOf(readDocument('docs/postgres.md'), 'sql')
  assert.equal(sql!.code, `${schema}\n`)
})

test('docs/sqlite.md shows the schema', { skip: !hasSqlite && 'this Node has no node:sqlite' }, () => {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const database = new DatabaseSync(':memory:')
  sqliteStore(database)
  const made = database.prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL').all()
  const [sql] = blocksOf(readDocument('docs/sqlite.md'), 'sql')
  const onOneLine = (text: unknown): string => String(text).replace(/\s+/g, ' ').trim()
  assert.deepEqual(
    made.map((row) => onOneLine(row['sql'])),
    [onOneLine(sql!.code)],
  )
})
