import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { createPlantClient } from '../../src/client/plant-client.ts'
import { EDGE_CASE_IDS, EDGE_CASE_OWNERS, EDGE_CASE_TEXTS } from '../../src/conformance/edge-cases.ts'
import { memoryStore } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { waitForChild } from '../support/child-process.ts'
import { connectClient } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { getCode } from '../support/package/documents.ts'
import { getSkipReason, startExample } from '../support/package/examples.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import { createProject, packPackage, runScript } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { skipWithoutPostgres, openDatabase } from '../support/database/postgres-database.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { startCaddy, startNginx } from '../support/wire/proxies.ts'
import { TLS } from '../support/wire/tls/certificate.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { del, get, getPort, post, sendToPort, serve, servePlants } from '../support/wire/service.ts'
import {
  createCorruptDatabase,
  createDatabasePath,
  skipWithoutSqlite as needsSqlite,
} from '../support/database/sqlite-file.ts'
import { waitUntil } from '../support/wait-until.ts'

const CERTIFICATES = fileURLToPath(new URL('../support/wire/tls/', import.meta.url))
const ESLINT = fileURLToPath(new URL('../peers/node_modules/eslint-9/bin/eslint.js', import.meta.url))
const ADA_TOKEN = 'a-long-random-token'

function getRecipeCode(heading: string, language: string, n = 0): string {
  return getCode('docs/recipes.md', language, heading, n)
}

test('eslint-plugin-import resolves every entry point of the package', { skip: skipWithoutPeers }, async (t) => {
  const entries = ['', '/client', '/conformance', '/postgres', '/server', '/sqlite'].map(
    (path) => `import 'plant-store${path}'\n`,
  )
  const project = await createProject(t, {
    'eslint.config.mjs': getRecipeCode('ESLint', 'js'),
    'main.mjs': `${entries.join('')}import 'plant-store/other'\n`,
  })
  const output = await runScript(`node ${ESLINT} main.mjs || true`, project)
  assert.deepEqual(output.match(/Unable to resolve .*'/g), ["Unable to resolve path to module 'plant-store/other'"])
})

test('the script copies all plants and skips those that already exist', async (t) => {
  const [source, target] = [memoryStore(), memoryStore()]
  const plants = Array.from({ length: 1001 }, (_, index) => ({ id: 2n ** 53n + BigInt(index), name: `Plant ${index}` }))
  for (const plant of plants) void source.create('ann', plant)
  void target.create('bob', { id: plants[5]!.id, name: 'Moss' })
  const urls = [source, target].map(async (store) => `http://127.0.0.1:${getPort(await servePlants(t, { store }))}`)
  const [SOURCE_URL, TARGET_URL] = await Promise.all(urls)
  const project = await createProject(t, { 'main.mjs': getRecipeCode('Copying plants to another service', 'js') })
  const env = { SOURCE_URL, TARGET_URL, SOURCE_TOKEN: 'ann', TARGET_TOKEN: 'bob' }
  assert.equal(await runScript('node main.mjs 2>&1', project, env), `${plants[5]!.id} already exists\n`)
  const copied = []
  const client = createPlantClient({ url: TARGET_URL!, token: 'bob' })
  for await (const plant of client.list()) copied.push(plant)
  assert.deepEqual(copied, plants.with(5, { id: plants[5]!.id, name: 'Moss' }))
})

interface Span {
  readonly name: string
  readonly attributes: { key: string; value: { stringValue?: string } }[]
}

interface Traces {
  readonly resourceSpans: { scopeSpans: { spans: Span[] }[] }[]
}

const [TRACED_SERVICE, TELEMETRY] = [getRecipeCode('OpenTelemetry', 'js'), getRecipeCode('OpenTelemetry', 'js', 1)]
const tracingOptions = { skip: getSkipReason(TELEMETRY), timeout: 60_000 }

test('OpenTelemetry spans contain the route of the request, even during a shutdown', tracingOptions, async (t) => {
  const exported: string[] = []
  const collector = await serve(t, (message, response) => {
    void text(message).then((body) => {
      exported.push(body)
      response.setHeader('Content-Type', 'application/json').end('{}')
    })
  })
  const project = await createProject(t, { 'telemetry.mjs': TELEMETRY })
  const program = `${TRACED_SERVICE}process.once('SIGTERM', () => process.send('draining'))`
  const { port, child } = await startExample(t, program, project, {
    NODE_OPTIONS: '--import ./telemetry.mjs',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${getPort(collector)}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_LOGS_EXPORTER: 'none',
  })

  const late = await RawConnection.open(port)
  late.send(`POST /api/plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ADA_TOKEN}\r\n`)
  late.send('Content-Type: application/json\r\nContent-Length: 22\r\n\r\n')
  await sendToPort(port, { ...post(ADA_TOKEN, '{"id":1,"name":"Fern"}'), path: '/api/plants' })
  await sendToPort(port, { ...del(ADA_TOKEN, 1n), path: '/api/plants/1' })
  await sendToPort(port, get(ADA_TOKEN, '/api/plants'))
  await sendToPort(port, get(ADA_TOKEN, '/nothing'))
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await waitForChild(child, 'message')
  const [response] = await late.send('{"id":2,"name":"Late"}').readResponses(1)
  assert.equal(response!.status, 200)
  assert.deepEqual(await exited, [0, null])

  const resources = exported.flatMap((body) => (JSON.parse(body) as Traces).resourceSpans)
  const spans = resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
  const routeOf = ({ attributes }: Span) => attributes.find(({ key }) => key === 'http.route')?.value.stringValue
  const named = spans.map((span) => `${span.name} of ${routeOf(span)}`)
  const [create, remove] = ['POST /api/plants of /api/plants', 'DELETE /api/plants/{id} of /api/plants/{id}']
  assert.deepEqual(named, [create, remove, 'GET /api/plants of /api/plants', 'GET of undefined', create])
  assert.ok(!exported.join('').includes(ADA_TOKEN))
})

suite('validation with a schema', () => {
  const byZod = getRecipeCode('Validation with a schema', 'js')
  const rules = /^const rules = .*?^\}\)$/ms
  const messages = {
    zod: [
      byZod,
      'name: Too small: expected string to have >=1 characters; tag: Invalid option: expected one of "herb"|"succulent"|"tropical"',
    ],
    valibot: [
      byZod.replace("import { z } from 'zod'", '').replace(rules, getRecipeCode('Validation with a schema', 'js', 1)),
      'name: Invalid length: Expected >=1 but received 0; tag: Invalid type: Expected ("herb" | "succulent" | "tropical") but received "fern"',
    ],
  } as const
  for (const [name, [program, message]] of Object.entries(messages)) {
    test(`rejects an invalid plant with the error messages of ${name}`, { skip: getSkipReason(program) }, async (t) => {
      const { port } = await startExample(t, program)
      const { status, body } = await sendToPort(port, post(ADA_TOKEN, '{"id":1,"name":"","tag":"fern"}'))
      assert.deepEqual([status, body], [400, JSON.stringify({ error: 40002, message })])
      assert.equal(
        (await sendToPort(port, post(ADA_TOKEN, '{"id":9007199254740993,"name":"Fern","tag":"herb"}'))).status,
        200,
      )
    })
  }

  test('accepts an asynchronous schema', { skip: getSkipReason(byZod) }, async (t) => {
    const rule = ".refine(async (name) => name !== 'Fern', 'no ferns')"
    const { port } = await startExample(t, byZod.replace('.max(200)', rule))
    const body = JSON.stringify({ error: 40002, message: 'name: no ferns' })
    assert.equal((await sendToPort(port, post(ADA_TOKEN, '{"id":1,"name":"Fern"}'))).body, body)
    assert.equal((await sendToPort(port, post(ADA_TOKEN, '{"id":1,"name":"Moss"}'))).status, 200)
  })
})

const PINO = getRecipeCode('Logging with pino', 'js')

test('pino logs the owner, the error and its cause, but no token', { skip: getSkipReason(PINO) }, async (t) => {
  const failing =
    "store: { create: () => { throw new Error('broken') }, list: () => ({ plants: [], hasMore: false }), delete: () => true }, onError"
  const { port, child } = await startExample(t, PINO.replace('onError', failing))
  let log = ''
  child.stdout!.on('data', (chunk: Buffer) => (log += chunk.toString()))
  await sendToPort(port, get(ADA_TOKEN))
  await sendToPort(port, get('another-token'))
  await sendToPort(port, post(ADA_TOKEN, '{"id":1,"name":"Fern"}'))
  await waitUntil(() => log.split('\n').length > 4)

  const lines = log.trim().split('\n')
  const logged = lines.map((line) => JSON.parse(line) as Record<string, Record<string, unknown> | undefined>)
  assert.deepEqual(
    logged.map(({ owner, error, err, req, res }) => [owner, error, err?.['message'], req?.['id'], res?.['statusCode']]),
    [
      ['ada', undefined, undefined, 1, 200],
      [undefined, 40101, undefined, 2, 401],
      [undefined, undefined, 'broken', 3, undefined],
      ['ada', 50000, 'failed with status code 500', 3, 500],
    ],
  )
  assert.ok(!log.includes(ADA_TOKEN) && !log.includes('another-token'))
})

suite('a reverse proxy forwards requests to the standalone server', () => {
  const plain = getCode('docs/deployment.md', 'nginx')
  const files = { 'fullchain.pem': 'localhost.crt', 'privkey.pem': 'localhost.key' }
  const certificate = Object.entries(files).reduce(
    (text, [name, own]) => text.replace(`/etc/letsencrypt/live/plants.example/${name}`, CERTIFICATES + own),
    getRecipeCode('TLS with Caddy or nginx', 'nginx'),
  )
  const tls = `https://127.0.0.1:443 {\n  tls ${CERTIFICATES}localhost.crt ${CERTIFICATES}localhost.key`
  const rows = [
    ['nginx', 'http', plain.replace('listen 8080', 'listen 443')],
    ['nginx', 'https', plain.replace(/^ *listen 8080;\n/m, certificate)],
    ['caddy', 'https', getRecipeCode('TLS with Caddy or nginx', 'caddyfile').replace('plants.example {', tls)],
  ] as const
  for (const [name, protocol, configuration] of rows) {
    test(`${name} over ${protocol}`, { skip: skipWithoutCommand(name), timeout: 60_000 }, async (t) => {
      const program = await startProgram(t, { PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '75000' })
      const port = await findFreePort()
      const there = configuration
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace('127.0.0.1:443', `127.0.0.1:${port}`)
        .replace('127.0.0.1:3000', `127.0.0.1:${program.port}`)
      await (name === 'caddy' ? startCaddy : startNginx)(t, port, there)
      const client = connectClient(protocol, port)
      t.after(() => client.close())
      for (const id of ['1', '9007199254740993']) {
        const { status, body } = await client.send(post(TOKEN, `{"id":${id},"name":"Fern"}`))
        assert.deepEqual([status, body], [200, '{"name":"Fern"}'])
      }
      const { body, headers } = await client.send(get(TOKEN, '/plants?limit=1'))
      assert.deepEqual([body, headers['link']], ['[{"name":"Fern"}]', '<plants?limit=1&after=1>; rel="next"'])
      assert.equal((await client.send(get('refused'))).status, 401)
      const large = post(TOKEN, `{"id":2,"name":"${'a'.repeat(70_000)}"}`)
      const [refused, own] = [await client.send(large), await sendToPort(program.port, large)]
      assert.deepEqual([refused.status, refused.body], [413, own.body])
      assert.equal(refused.headers['content-type'], 'application/json')
    })
  }
})

test('a node:https server loads a new certificate on SIGHUP', { timeout: 60_000 }, async (t) => {
  const project = await createProject(t)
  const install = (name: string): void => copyFileSync(join(CERTIFICATES, name), join(project, 'localhost.crt'))
  copyFileSync(join(CERTIFICATES, 'localhost.key'), join(project, 'localhost.key'))
  install('localhost.crt')
  const log = "console.error('Keeping the old certificate:', error.message)"
  const example = getRecipeCode('TLS in Node', 'js')
    .replaceAll("'localhost.", "'./localhost.")
    .replace(log, 'process.send(1)')
  const { port, child } = await startExample(t, example, project)
  const first = connectClient('https', port)
  t.after(() => first.close())
  assert.equal((await first.send(get(ADA_TOKEN))).body, '[]')

  /** Returns the common name of the certificate that a new connection gets. */
  async function readCommonName(): Promise<unknown> {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return subject.CN
  }

  assert.equal(await readCommonName(), 'localhost')
  install('renewed.crt')
  child.kill('SIGHUP')
  await waitUntil(async () => (await readCommonName()) !== 'localhost')

  writeFileSync(join(project, 'localhost.crt'), TLS.cert.subarray(0, 100))
  child.kill('SIGHUP')
  await waitForChild(child, 'message')
  assert.equal(await readCommonName(), '127.0.0.1')
  assert.equal((await first.send(get(ADA_TOKEN))).body, '[]')
})

test(
  'nginx limits the request rate per token, even if clients vary the Authorization header (rate limit bypass)',
  { skip: skipWithoutCommand('nginx') },
  async (t) => {
    const port = await findFreePort()
    const configuration = getRecipeCode('Rate limiting with nginx', 'nginx')
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
      .replace('127.0.0.1:3000', `127.0.0.1:${getPort(await servePlants(t))}`)
      // At this rate, no request beyond the burst is allowed during the test.
      .replace(/rate=\d+r\/s/g, 'rate=1r/m')
    await startNginx(t, port, configuration)
    async function statusesOf(authorizations: readonly string[]): Promise<Record<string, number>> {
      const counts: Record<string, number> = {}
      for (const authorization of authorizations) {
        const { status } = await sendToPort(port, { ...get(''), fields: ['Authorization', authorization] })
        counts[status] = (counts[status] ?? 0) + 1
      }
      return counts
    }

    const schemes = ['Bearer', 'bearer', 'bEaReR', '\tBearer', '\t \tBEARER', '  Bearer']
    const ends = ['', ' ', '\t', '\t\t', ' \t ', '\t'.repeat(100)]
    const spellings = schemes.flatMap((scheme, i) => ends.map((end, n) => `${scheme}${' '.repeat(n * i + 1)}ada${end}`))
    assert.deepEqual(await statusesOf(spellings), { 200: 21, 429: spellings.length - 21 })
    assert.deepEqual(await statusesOf(['Bearer grace']), { 200: 1 })
    const { status, headers, body } = await sendToPort(port, get('ada'))
    assert.deepEqual(
      [status, headers['retry-after'], headers['content-type'], body],
      [429, '1', 'application/json', '{"error":42900,"message":"Too many requests; try again."}'],
    )
    const invented = Array.from({ length: 200 }, (_, i) => `Bearer token${i}`)
    const counts = await statusesOf(invented)
    assert.ok(counts[200]! < 180 && counts[429]! > 0, JSON.stringify(counts))
  },
)

const migrationOptions = {
  skip: needsSqlite || skipWithoutPostgres || skipWithoutCommand('sqlite3') || skipWithoutCommand('psql'),
}

/** Runs the commands in the folder of a database, for a project that is installed elsewhere. */
async function runMigration(path: string, url: string): Promise<void> {
  const { folder } = await packPackage()
  const script = getRecipeCode('Migrating from SQLite to Postgres', 'sh').replace('node_modules', `${folder}/$&`)
  await runScript(script, dirname(path), { URL: url, PSQLRC: '/dev/null' })
}

test('the migration from SQLite to Postgres preserves every plant', migrationOptions, async (t) => {
  const path = createDatabasePath(t)
  const from = sqliteStore(path)
  const texts = [...EDGE_CASE_TEXTS, 'a\n\\.\nb', '\\.', '\\N']
  const owners = [...EDGE_CASE_OWNERS, '\\.']
  for (const [i, name] of texts.entries()) {
    await from.create('ada', { id: BigInt(i), name })
    await from.create('grace', { id: BigInt(i), name: 'Fern', tag: name })
  }
  for (const owner of owners) for (const id of EDGE_CASE_IDS) await from.create(owner, { id, name: owner })
  const database = await openDatabase(t)
  const to = postgresStore(database.openPool())

  await runMigration(path, database.url)

  for (const owner of ['ada', 'grace', ...owners]) {
    const all = { limit: 1000, maxBytes: 2 ** 30 }
    assert.deepEqual(await to.list(owner, all), await from.list(owner, all), owner)
  }
  const { rows } = await database.openPool().query('SELECT count(*)::int AS plants FROM plant_store_plants')
  assert.deepEqual(rows, [{ plants: 2 * texts.length + owners.length * EDGE_CASE_IDS.length }])
  assert.equal(statSync(join(dirname(path), 'plants.csv')).mode & 0o777, 0o600)
  await from.close()
})

suite('the migration from SQLite to Postgres fails and copies nothing', migrationOptions, () => {
  for (const [name, prepare] of [
    ['if a part of the file is corrupt', createCorruptDatabase],
    ['if the file is missing', () => undefined],
  ] as const) {
    test(name, async (t) => {
      const path = createDatabasePath(t)
      await prepare(path)
      const database = await openDatabase(t)
      await assert.rejects(runMigration(path, database.url))
      const { rows } = await database.openPool().query('SELECT count(*)::int AS plants FROM plant_store_plants')
      assert.deepEqual(rows, [{ plants: 0 }])
    })
  }
})
