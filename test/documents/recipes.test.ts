import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { AWKWARD_IDS, AWKWARD_OWNERS, AWKWARD_TEXTS } from '../../src/conformance/awkward-values.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { connectTo } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { codeOf } from '../support/package/documents.ts'
import { skipExample, startExample } from '../support/package/examples.ts'
import { freePort } from '../support/wire/free-port.ts'
import { createProject, packPackage, runScript } from '../support/package/packed.ts'
import { needsServer, openDatabase } from '../support/database/postgres-server.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { startCaddy, startNginx } from '../support/wire/proxies.ts'
import { TLS } from '../support/wire/tls/certificate.ts'
import { withoutCommand } from '../support/requirements.ts'
import { del, get, portOf, post, sendTo, serve, servePlants } from '../support/wire/service.ts'
import { newPath, skip as needsSqlite } from '../support/database/sqlite-file.ts'
import { until } from '../support/until.ts'

const CERTIFICATES = fileURLToPath(new URL('../support/wire/tls/', import.meta.url))
const ADA = 'a-long-random-token'

function code(heading: string, language: string, n = 0): string {
  return codeOf('docs/recipes.md', language, heading, n)
}

interface Span {
  readonly name: string
  readonly attributes: { key: string; value: { stringValue?: string } }[]
}

interface Traces {
  readonly resourceSpans: { scopeSpans: { spans: Span[] }[] }[]
}

const [TRACED, TELEMETRY] = [code('OpenTelemetry', 'js'), code('OpenTelemetry', 'js', 1)]
const traced = { skip: skipExample(TELEMETRY), timeout: 60_000 }

test('spans have the resource of their request, up to the last', traced, async (t) => {
  const told: string[] = []
  const collector = await serve(t, (message, response) => {
    void text(message).then((body) => {
      told.push(body)
      response.setHeader('Content-Type', 'application/json').end('{}')
    })
  })
  const project = await createProject(t, { 'telemetry.mjs': TELEMETRY })
  const program = `${TRACED}process.once('SIGTERM', () => process.send('told'))`
  const { port, child } = await startExample(t, program, project, {
    NODE_OPTIONS: '--import ./telemetry.mjs',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${portOf(collector)}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_LOGS_EXPORTER: 'none',
  })

  const late = await RawConnection.open(port)
  late.send(`POST /api/plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ADA}\r\n`)
  late.send('Content-Type: application/json\r\nContent-Length: 22\r\n\r\n')
  await sendTo(port, { ...post(ADA, '{"id":1,"name":"Fern"}'), path: '/api/plants' })
  await sendTo(port, { ...del(ADA, 1n), path: '/api/plants/1' })
  await sendTo(port, get(ADA, '/api/plants'))
  await sendTo(port, get(ADA, '/nothing'))
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await once(child, 'message')
  const [answer] = await late.send('{"id":2,"name":"Late"}').answers(1)
  assert.equal(answer!.status, 200)
  assert.deepEqual(await exited, [0, null])

  const resources = told.flatMap((body) => (JSON.parse(body) as Traces).resourceSpans)
  const spans = resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
  const routeOf = ({ attributes }: Span) => attributes.find(({ key }) => key === 'http.route')?.value.stringValue
  const named = spans.map((span) => `${span.name} of ${routeOf(span)}`)
  const [create, remove] = ['POST /api/plants of /api/plants', 'DELETE /api/plants/{id} of /api/plants/{id}']
  assert.deepEqual(named, [create, remove, 'GET /api/plants of /api/plants', 'GET of undefined', create])
  assert.ok(!told.join('').includes(ADA))
})

suite('a schema says what is wrong with a plant', () => {
  const byZod = code('Rules by a schema', 'js')
  const rules = /^const rules = .*?^\}\)$/ms
  const messages = {
    zod: [
      byZod,
      'name: Too small: expected string to have >=1 characters; tag: Invalid option: expected one of "herb"|"succulent"|"tropical"',
    ],
    valibot: [
      byZod.replace("import { z } from 'zod'", '').replace(rules, code('Rules by a schema', 'js', 1)),
      'name: Invalid length: Expected >=1 but received 0; tag: Invalid type: Expected ("herb" | "succulent" | "tropical") but received "fern"',
    ],
  } as const
  for (const [name, [program, message]] of Object.entries(messages)) {
    test(name, { skip: skipExample(program) }, async (t) => {
      const { port } = await startExample(t, program)
      const { status, body } = await sendTo(port, post(ADA, '{"id":1,"name":"","tag":"fern"}'))
      assert.deepEqual([status, body], [400, JSON.stringify({ error: 40002, message })])
      assert.equal((await sendTo(port, post(ADA, '{"id":9007199254740993,"name":"Fern","tag":"herb"}'))).status, 200)
    })
  }

  test('and can be asynchronous', { skip: skipExample(byZod) }, async (t) => {
    const rule = ".refine(async (name) => name !== 'Fern', 'no ferns')"
    const { port } = await startExample(t, byZod.replace('.max(200)', rule))
    const body = JSON.stringify({ error: 40002, message: 'name: no ferns' })
    assert.equal((await sendTo(port, post(ADA, '{"id":1,"name":"Fern"}'))).body, body)
    assert.equal((await sendTo(port, post(ADA, '{"id":1,"name":"Moss"}'))).status, 200)
  })
})

const PINO = code('A log by pino', 'js')

test('pino logs who asked, what came of it and why, and no token', { skip: skipExample(PINO) }, async (t) => {
  const failing =
    "store: { create: () => { throw new Error('broken') }, list: () => ({ plants: [], hasMore: false }), delete: () => true }, onError"
  const { port, child } = await startExample(t, PINO.replace('onError', failing))
  let log = ''
  child.stdout!.on('data', (chunk: Buffer) => (log += chunk.toString()))
  await sendTo(port, get(ADA))
  await sendTo(port, get('another-token'))
  await sendTo(port, post(ADA, '{"id":1,"name":"Fern"}'))
  await until(() => log.split('\n').length > 4)

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
  assert.ok(!log.includes(ADA) && !log.includes('another-token'))
})

suite('a proxy leads to the program', () => {
  const plain = codeOf('docs/deploying.md', 'nginx')
  const files = { 'fullchain.pem': 'localhost.crt', 'privkey.pem': 'localhost.key' }
  const certificate = Object.entries(files).reduce(
    (text, [name, own]) => text.replace(`/etc/letsencrypt/live/plants.example/${name}`, CERTIFICATES + own),
    code('TLS by a proxy', 'nginx'),
  )
  const tls = `https://127.0.0.1:443 {\n  tls ${CERTIFICATES}localhost.crt ${CERTIFICATES}localhost.key`
  const rows = [
    ['nginx', 'http', plain.replace('listen 8080', 'listen 443')],
    ['nginx', 'https', plain.replace(/^ *listen 8080;\n/m, certificate)],
    ['caddy', 'https', code('TLS by a proxy', 'caddyfile').replace('plants.example {', tls)],
  ] as const
  for (const [name, protocol, configuration] of rows) {
    test(`${name}, by ${protocol}`, { skip: withoutCommand(name), timeout: 60_000 }, async (t) => {
      const program = await startProgram(t, { PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '75000' })
      const port = await freePort()
      const there = configuration
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace('127.0.0.1:443', `127.0.0.1:${port}`)
        .replace('127.0.0.1:3000', `127.0.0.1:${program.port}`)
      await (name === 'caddy' ? startCaddy : startNginx)(t, port, there)
      const client = connectTo(protocol, port)
      t.after(() => client.close())
      for (const id of ['1', '9007199254740993']) {
        const { status, body } = await client.send(post(TOKEN, `{"id":${id},"name":"Fern"}`))
        assert.deepEqual([status, body], [200, '{"name":"Fern"}'])
      }
      const { body, headers } = await client.send(get(TOKEN, '/plants?limit=1'))
      assert.deepEqual([body, headers['link']], ['[{"name":"Fern"}]', '<plants?limit=1&after=1>; rel="next"'])
      assert.equal((await client.send(get('refused'))).status, 401)
      const large = post(TOKEN, `{"id":2,"name":"${'a'.repeat(70_000)}"}`)
      const [refused, own] = [await client.send(large), await sendTo(program.port, large)]
      assert.deepEqual([refused.status, refused.body], [413, own.body])
      assert.equal(refused.headers['content-type'], 'application/json')
    })
  }
})

test('a server of node:https takes a new certificate, and refuses a broken one', { timeout: 60_000 }, async (t) => {
  const project = await createProject(t)
  const install = (name: string): void => copyFileSync(join(CERTIFICATES, name), join(project, 'localhost.crt'))
  copyFileSync(join(CERTIFICATES, 'localhost.key'), join(project, 'localhost.key'))
  install('localhost.crt')
  const said = "console.error('The certificate stays as it was:', error.message)"
  const example = code('TLS in Node', 'js').replaceAll("'localhost.", "'./localhost.").replace(said, 'process.send(1)')
  const { port, child } = await startExample(t, example, project)
  const first = connectTo('https', port)
  t.after(() => first.close())
  assert.equal((await first.send(get(ADA))).body, '[]')

  /** The name in the certificate that a new connection gets. */
  async function newName(): Promise<unknown> {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return subject.CN
  }

  assert.equal(await newName(), 'localhost')
  install('renewed.crt')
  child.kill('SIGHUP')
  await until(async () => (await newName()) !== 'localhost')

  writeFileSync(join(project, 'localhost.crt'), TLS.cert.subarray(0, 100))
  child.kill('SIGHUP')
  await once(child, 'message')
  assert.equal(await newName(), '127.0.0.1')
  assert.equal((await first.send(get(ADA))).body, '[]')
})

test('nginx limits the requests of a token and of an address', { skip: withoutCommand('nginx') }, async (t) => {
  const port = await freePort()
  const configuration = code('Limits of requests', 'nginx')
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replace('127.0.0.1:3000', `127.0.0.1:${portOf(await servePlants(t))}`)
    // So that none is let in for the time that the test takes.
    .replace(/rate=\d+r\/s/g, 'rate=1r/m')
  await startNginx(t, port, configuration)
  async function statusesOf(authorizations: readonly string[]): Promise<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const authorization of authorizations) {
      const { status } = await sendTo(port, { ...get(''), fields: ['Authorization', authorization] })
      counts[status] = (counts[status] ?? 0) + 1
    }
    return counts
  }

  const spellings = Array.from({ length: 30 }, (_, i) => `${i % 2 === 0 ? 'Bearer' : 'bearer'}${' '.repeat(i + 1)}ada`)
  assert.deepEqual(await statusesOf(spellings), { 200: 21, 429: 9 })
  assert.deepEqual(await statusesOf(['Bearer grace']), { 200: 1 })
  const { status, headers, body } = await sendTo(port, get('ada'))
  assert.deepEqual(
    [status, headers['retry-after'], headers['content-type'], body],
    [429, '1', 'application/json', '{"error":42900,"message":"Too many requests; try again."}'],
  )
  const invented = Array.from({ length: 200 }, (_, i) => `Bearer token${i}`)
  const counts = await statusesOf(invented)
  assert.ok(counts[200]! < 180 && counts[429]! > 0, JSON.stringify(counts))
})

const move = { skip: needsSqlite || needsServer || withoutCommand('sqlite3') || withoutCommand('psql') }

test('plants move from SQLite to Postgres as they are', move, async (t) => {
  const path = newPath(t)
  const from = sqliteStore(path)
  const texts = [...AWKWARD_TEXTS, 'a\n\\.\nb', '\\.', '\\N']
  const owners = [...AWKWARD_OWNERS, '\\.']
  for (const [i, name] of texts.entries()) {
    await from.create('ada', { id: BigInt(i), name })
    await from.create('grace', { id: BigInt(i), name: 'Fern', tag: name })
  }
  for (const owner of owners) for (const id of AWKWARD_IDS) await from.create(owner, { id, name: owner })
  const database = await openDatabase(t)
  const to = postgresStore(database.openPool())

  const script = code('From SQLite to Postgres', 'sh').replace('plants.db', path)
  await runScript(script, (await packPackage()).folder, { URL: database.url, PSQLRC: '/dev/null' })

  for (const owner of ['ada', 'grace', ...owners]) {
    const all = { limit: 1000, maxBytes: 2 ** 30 }
    assert.deepEqual(await to.list(owner, all), await from.list(owner, all), owner)
  }
  const { rows } = await database.openPool().query('SELECT count(*)::int AS plants FROM plant_store_plants')
  assert.deepEqual(rows, [{ plants: 2 * texts.length + owners.length * AWKWARD_IDS.length }])
  await from.close()
})
