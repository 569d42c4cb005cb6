import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { createPlantClient } from '../../src/client/plant-client.ts'
import { EDGE_CASE_IDS, EDGE_CASE_OWNERS, EDGE_CASE_TEXTS } from '../../src/conformance/edge-cases.ts'
import { memoryStore, type NewPlant } from '../../src/index.ts'
import { TEXT_NAMES } from '../../src/plants/plant.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { waitForChild } from '../support/child-process.ts'
import { openDatabase, skipWithoutPostgres } from '../support/postgres-database.ts'
import { getCode } from '../support/documents.ts'
import { getSkipReason, startExample } from '../support/examples.ts'
import { createProject, packPackage, runScript } from '../support/packed-package.ts'
import { skipWithoutCommand, skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectClient } from '../support/client.ts'
import { findFreePort } from '../support/find-free-port.ts'
import { startCaddy, startNginx } from '../support/proxies.ts'
import { get, getPort, post, sendToPort, servePlants } from '../support/service.ts'

const CERTIFICATES = fileURLToPath(new URL('../support/', import.meta.url))
const TOKEN = 'a-long-random-token'

function getRecipeCode(heading: string, language: string): string {
  return getCode('docs/recipes.md', language, heading)
}

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
  for await (const plant of createPlantClient({ url: TARGET_URL!, token: 'bob' }).list()) copied.push(plant)
  assert.deepEqual(copied, plants.with(5, { id: plants[5]!.id, name: 'Moss' }))
})

const ZOD = getRecipeCode('Validation with a schema', 'js')

test('the schema rejects an invalid plant with the messages of zod', { skip: getSkipReason(ZOD) }, async (t) => {
  const { port } = await startExample(t, ZOD)
  const { status, body } = await sendToPort(port, post(TOKEN, '{"id":1,"name":"","tag":"fern"}'))
  assert.equal(status, 400)
  assert.match(body, /^{"error":40002,"message":"name: Too small: .*; tag: Invalid option: .*"}$/)
  assert.equal((await sendToPort(port, post(TOKEN, '{"id":1,"name":"Fern","tag":"herb"}'))).status, 200)
})

const PINO = getRecipeCode('Logging with pino', 'js')

test('pino logs the owner, the error and its cause, but no token', { skip: getSkipReason(PINO) }, async (t) => {
  const list = 'list: () => ({ plants: [], hasMore: false })'
  const store = `store: { ${list}, create: () => { throw new Error('broken') }, delete: () => true }`
  const { port, child } = await startExample(t, PINO.replace('onError:', `${store}, onError:`))
  let log = ''
  child.stdout!.on('data', (chunk: Buffer) => (log += chunk.toString()))
  await sendToPort(port, get(TOKEN))
  await sendToPort(port, get('another-token'))
  await sendToPort(port, post(TOKEN, '{"id":1,"name":"Fern"}'))
  await waitUntil(() => log.split('\n').length > 4)

  const lines = log.trim().split('\n')
  const logged = lines.map((line) => JSON.parse(line) as Record<string, Record<string, unknown> | undefined>)
  assert.deepEqual(
    logged.map(({ owner, error, err, res }) => [owner, error, err?.['message'], res?.['statusCode']]),
    [
      ['ada', undefined, undefined, 200],
      [undefined, 40101, undefined, 401],
      [undefined, undefined, 'broken', undefined],
      ['ada', 50000, 'failed with status code 500', 500],
    ],
  )
  assert.ok(!log.includes(TOKEN) && !log.includes('another-token'))
})

suite('a reverse proxy forwards requests', () => {
  const plain = getCode('docs/deployment.md', 'nginx')
  const files = { 'fullchain.pem': 'localhost.crt', 'privkey.pem': 'localhost.key' }
  const certificate = Object.entries(files).reduce(
    (text, [name, own]) => text.replace(`/etc/letsencrypt/live/plants.example/${name}`, CERTIFICATES + own),
    getRecipeCode('TLS with Caddy or nginx', 'nginx'),
  )
  const tls = `https://127.0.0.1:443 {\n  tls ${CERTIFICATES}localhost.crt ${CERTIFICATES}localhost.key`
  for (const [name, protocol, configuration] of [
    ['nginx', 'http', plain.replace('listen 8080', 'listen 443')],
    ['nginx', 'https', plain.replace(/^ *listen 8080;\n/m, certificate)],
    ['caddy', 'https', getRecipeCode('TLS with Caddy or nginx', 'caddyfile').replace('plants.example {', tls)],
  ] as const) {
    test(`${name} over ${protocol}`, { skip: skipWithoutCommand(name), timeout: 60_000 }, async (t) => {
      const upstream = getPort(await servePlants(t))
      const port = await findFreePort()
      const adapted = configuration
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace('127.0.0.1:443', `127.0.0.1:${port}`)
        .replace('127.0.0.1:3000', `127.0.0.1:${upstream}`)
      await (name === 'caddy' ? startCaddy : startNginx)(t, port, adapted)
      const client = connectClient(protocol, port)
      t.after(() => client.close())
      for (const id of ['1', '9007199254740993']) {
        assert.equal((await client.send(post('ada', `{"id":${id},"name":"Fern"}`))).status, 200)
      }
      const { body, headers } = await client.send(get('ada', '/plants?limit=1'))
      assert.deepEqual([body, headers['link']], ['[{"name":"Fern"}]', '<plants?limit=1&after=1>; rel="next"'])
      const { status, body: rejection } = await client.send(post('ada', `{"id":2,"name":"${'a'.repeat(70_000)}"}`))
      assert.deepEqual([status, rejection.slice(0, 14)], [413, '{"error":41300'])
    })
  }
})

test('a node:https server loads a new certificate on SIGHUP', { timeout: 60_000 }, async (t) => {
  const project = await createProject(t)
  const install = (name: string): void => copyFileSync(join(CERTIFICATES, name), join(project, 'localhost.crt'))
  copyFileSync(join(CERTIFICATES, 'localhost.key'), join(project, 'localhost.key'))
  install('localhost.crt')
  const log = "console.error('Keeping the old certificate:', error.message)"
  const example = getRecipeCode('TLS in Node', 'js').replaceAll("'localhost.", "'./localhost.")
  const { port, child } = await startExample(t, example.replace(log, 'process.send(1)'), project)

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
  await waitUntil(async () => (await readCommonName()) === '127.0.0.1')

  writeFileSync(join(project, 'localhost.crt'), 'half written')
  child.kill('SIGHUP')
  await waitForChild(child, 'message')
  assert.equal(await readCommonName(), '127.0.0.1')
})

test(
  'nginx limits the request rate per token (rate limit bypass)',
  { skip: skipWithoutCommand('nginx') },
  async (t) => {
    const port = await findFreePort()
    const configuration = getRecipeCode('Rate limiting with nginx', 'nginx')
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
      .replace('127.0.0.1:3000', `127.0.0.1:${getPort(await servePlants(t))}`)
      // At this rate, no request beyond the burst is allowed during the test.
      .replace(/rate=\d+r\/s/g, 'rate=1r/m')
    await startNginx(t, port, configuration)
    async function countStatuses(authorizations: readonly string[]): Promise<Record<string, number>> {
      const counts: Record<string, number> = {}
      for (const authorization of authorizations) {
        const { status } = await sendToPort(port, { ...get(''), fields: ['Authorization', authorization] })
        counts[status] = (counts[status] ?? 0) + 1
      }
      return counts
    }

    const schemes = ['Bearer', 'bearer', '\tbEaReR', '  Bearer']
    const ends = ['', ' ', '\t', ' \t ', '\t'.repeat(100)]
    const spellings = schemes.flatMap((scheme, i) => ends.map((end, n) => `${scheme}${' '.repeat(n * i + 1)}ada${end}`))
    assert.deepEqual(await countStatuses([...spellings, ...spellings]), { 200: 21, 429: 19 })
    assert.deepEqual(await countStatuses(['Bearer grace']), { 200: 1 })
    const { headers, body } = await sendToPort(port, get('ada'))
    assert.equal(headers['retry-after'], '1')
    assert.equal(body, '{"error":42900,"message":"Too many requests; try again."}')
    const invented = await countStatuses(Array.from({ length: 200 }, (_, i) => `Bearer token${i}`))
    assert.ok(invented[429]! > 0, 'invented tokens are not limited per address')
  },
)

/** Creates a plant whose texts are all the same. */
const createPlant = (id: bigint, text: string): NewPlant =>
  Object.assign({ id, name: text }, ...TEXT_NAMES.map((name) => ({ [name]: text }))) as NewPlant

const migrationTools = skipWithoutSqlite || skipWithoutCommand('sqlite3') || skipWithoutCommand('psql')

test('the migration keeps every plant', { skip: migrationTools || skipWithoutPostgres }, async (t) => {
  const folder = createTempDirectory(t)
  const from = sqliteStore(join(folder, 'plants.db'))
  const texts = [...EDGE_CASE_TEXTS, 'a\n\\.\nb', '\\.', '\\N']
  const owners = [...EDGE_CASE_OWNERS, '\\.']
  for (const [i, text] of texts.entries()) await from.create('ada', createPlant(BigInt(i), text))
  for (const owner of owners) for (const id of EDGE_CASE_IDS) await from.create(owner, { id, name: owner })
  const database = await openDatabase(t)
  const to = postgresStore(database.openPool())

  const { folder: installed } = await packPackage()
  const script = getRecipeCode('Migrating from SQLite to Postgres', 'sh').replace('node_modules', `${installed}/$&`)
  await runScript(script, folder, { URL: database.url, PSQLRC: '/dev/null' })

  for (const owner of ['ada', ...owners]) {
    const page = { limit: 1000, maxBytes: 2 ** 30 }
    const [copied, original] = await Promise.all([to.list(owner, page), from.list(owner, page)])
    assert.deepEqual(copied.plants, original.plants, owner)
  }
  assert.equal(statSync(join(folder, 'plants.csv')).mode & 0o777, 0o600)
  await from.close()
})
