import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ERRORS } from '../../src/http/errors.ts'
import { schema } from '../../src/stores/postgres/postgres-store.ts'
import { bearer, portOf, sendTo, servePlants } from '../support/service.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const POSTGRES_URL = process.env['PLANT_STORE_TEST_POSTGRES_URL']
const hasCurl = await run('curl', ['--version']).then(
  () => true,
  () => false,
)

/** The blocks of the README that are fenced as this language. */
function blocks(language: string): readonly string[] {
  return [...readme.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code!)
}

const PRELOAD = ['--import', 'tsx', '--input-type=module']

const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  exports: Readonly<Record<string, string>>
}

/** The code with the sources in place of the package. */
function fromSources(code: string): string {
  return code.replace(/'plant-store(\/\w+)?'/g, (_, path = '') => {
    const built = exports[`.${path}`]!
    return `'${built.replace('/dist/', '/src/').replace(/js$/, 'ts')}'`
  })
}

function skipped(code: string): string | false {
  if (code.includes('sqliteStore(') && !isBuiltin('node:sqlite')) return 'this Node has no node:sqlite'
  return code.includes('postgres://') && POSTGRES_URL === undefined && 'PLANT_STORE_TEST_POSTGRES_URL is not set'
}

/** Runs an example until it listens. */
async function startExample(t: TestContext, code: string): Promise<number> {
  const program = fromSources(code)
    .replace('3000', '0')
    .replace('plants.db', ':memory:')
    .replace('postgres://user:password@host/database', POSTGRES_URL ?? '')
  const child = spawn(
    process.execPath,
    [...PRELOAD, '--import', './test/support/report-listening.ts', '--eval', program],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    },
  )
  t.after(async () => {
    child.kill()
    await once(child, 'exit')
  })
  return (await once(child, 'message'))[0] as number
}

suite('the README', () => {
  for (const code of blocks('js').filter((code) => code.includes('listen('))) {
    const imports = [...code.matchAll(/from '(?!node:|plant-store')(.+?)'/g)].map(([, name]) => name)
    test(
      `has an example of ${imports.join(' and ') || 'node:http'} that answers`,
      { skip: skipped(code) },
      async (t) => {
        const port = await startExample(t, code)
        const path = code.includes("'/api'") ? '/api/plants' : '/plants'
        const request = { method: 'GET', path, fields: bearer('a-long-random-token') }
        assert.deepEqual((await sendTo(port, request)).body, '[]')
        assert.equal((await sendTo(port, { ...request, fields: [] })).status, 401)
      },
    )
  }

  test('has a store that conforms', async () => {
    const [code] = blocks('js').filter((code) => code.includes('storeConformance('))
    const environment = { ...process.env, NODE_TEST_CONTEXT: undefined }
    await run(process.execPath, [...PRELOAD, '--eval', fromSources(code!)], { cwd: root, env: environment })
  })

  test('shows the schema of Postgres', () => {
    assert.deepEqual(blocks('sql'), [`${schema}\n`])
  })

  test('has a curl session with its real output', { skip: !hasCurl && 'curl is not installed' }, async (t) => {
    const server = await servePlants(t)
    const environment = { ...process.env, URL: `http://127.0.0.1:${portOf(server)}`, TOKEN: 'secret' }
    const [session] = blocks('console')
    for (const step of session!.split(/^\$ /m).slice(1)) {
      const [command, ...expected] = step.split('\n')
      const { stdout } = await run('sh', ['-c', command!], { env: environment })
      assert.equal(stdout.trimEnd(), expected.join('\n').trimEnd(), command)
    }
  })

  test('lists every error', () => {
    const listed = [...readme.matchAll(/^\| (\d{5}) \|/gm)].map(([, error]) => Number(error))
    assert.deepEqual(
      listed,
      Object.values(ERRORS)
        .map(({ error }) => error)
        .sort(),
    )
  })
})
