/** Tests what the examples in docs/embedding.md and docs/frameworks.md do beyond what readme.test.ts tests. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, constants } from 'node:http2'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { readDocument } from '../support/documents.ts'
import { findPrograms } from '../support/programs.ts'
import { getProtocol, getSkipReason, startExample } from '../support/examples.ts'
import { skipWithoutPeers } from '../support/extra-packages.ts'
import { createProject } from '../support/packed-package.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectClient } from '../support/client.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { bearer, get, post, sendToPort } from '../support/service.ts'
import { TLS } from '../support/certificate.ts'

const peers = { skip: skipWithoutPeers }
const TOKEN = 'a-long-random-token'
const EMBEDDING = findPrograms(readDocument('docs/embedding.md'))
const FRAMEWORKS = findPrograms(readDocument('docs/frameworks.md'))

const plant = (id: number | bigint): string => `{"id":${id},"name":"Fern"}`

/** Sends the rest of a body. Resolves with the status and whether the connection stays open. */
async function finishBody(sent: Writable, rest: string): Promise<[status: number | undefined, isOpen: boolean]> {
  sent.end(rest)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return [response.statusCode, response.headers.connection !== 'close']
}

for (const { code, language } of EMBEDDING.filter(({ heading }) => heading === 'Graceful shutdown')) {
  const options = { skip: getSkipReason(code), timeout: 60_000 }
  test(`the example for a graceful shutdown completes all requests (${language})`, options, async (t) => {
    const project = await createProject(t)
    const { port, child } = await startExample(t, code.replace('7000', '500'), project)
    const exited = once(child, 'exit')
    let id = 0

    /** Creates plants on one connection until the server closes it. */
    async function createPlants(): Promise<void> {
      const client = connectClient('http', port)
      for (let isOpen = true; isOpen;) {
        const body = plant(++id)
        const [status, staysOpen] = await finishBody(client.open(post(TOKEN, body)), body)
        assert.equal(status, 200)
        isOpen = staysOpen
        if (id === 200) child.kill('SIGTERM')
      }
      client.close()
    }
    const slow = connectClient('http', port).open(post(TOKEN, plant(0), ['Connection', 'close']))
    slow.write('{')
    await Promise.all(Array.from({ length: 10 }, createPlants))

    // The server no longer listens, but the slow request is still in flight.
    const isRefused = () => RawConnection.open(port).then(({ socket }) => !socket.destroy())
    await waitUntil(() => isRefused().catch(() => true))
    assert.deepEqual(await finishBody(slow, plant(0).slice(1)), [200, false])
    assert.deepEqual(await exited, [0, null])
    const store = sqliteStore(join(project, 'plants.db'))
    t.after(() => store.close())
    const stored: bigint[] = []
    for (let hasMore = true; hasMore;) {
      const page = await store.list('ada', { limit: 1000, maxBytes: 2 ** 20, after: stored.at(-1) ?? -1n })
      stored.push(...page.plants.map((plant) => plant.id))
      hasMore = page.hasMore
    }
    assert.equal(stored.length, id + 1)
  })
}

test("the quota example rejects a plant beyond its owner's quota", async (t) => {
  const { code } = EMBEDDING.find(({ heading }) => heading === 'Quotas')!
  const { port } = await startExample(t, code.replace('100', '1'))
  assert.equal((await sendToPort(port, post(TOKEN, plant(1)))).status, 200)
  const { status, body } = await sendToPort(port, post(TOKEN, plant(2)))
  assert.deepEqual([status, body], [400, '{"error":40002,"message":"You already have 1 plants."}'])
})

test('the Express example with rawBody keeps ids beyond 2^53 exact', peers, async (t) => {
  const { code } = EMBEDDING.find(({ code }) => code.includes('rawBody = '))!
  const { port } = await startExample(t, code)
  const path = '/api/plants'
  assert.equal((await sendToPort(port, { ...post(TOKEN, plant(2n ** 53n + 1n)), path })).status, 200)
  const { body } = await sendToPort(port, get(TOKEN, `${path}?include=id`))
  assert.equal(body, `[${plant(2n ** 53n + 1n)}]`)
})

suite('a path-based access check in Express (authorization bypass)', peers, () => {
  const together = EMBEDDING.find(({ heading }) => heading === 'Path-based access checks')!.code
  const apart = together.replace("'/api', rejectWrites,", "'/api/plants', rejectWrites)\napp.use('/api',")
  for (const [name, code, expected] of [
    ['rejects an encoded path if it is mounted together with the service', together, 403],
    ['is bypassed by an encoded path if it is mounted on /api/plants', apart, 200],
  ] as const) {
    test(name, async (t) => {
      const { port } = await startExample(t, code)
      const create = async (path: string) => (await sendToPort(port, { ...post(TOKEN, plant(1)), path })).status
      assert.equal(await create('/api/plants'), 403)
      assert.equal(await create('/api/%70lants'), expected)
      assert.equal(await create('/%61pi/plants'), 404)
      assert.equal((await sendToPort(port, get(TOKEN, '/api/plants'))).status, 200)
    })
  }
})

test('the AWS Lambda example serves plants, and rejects header fields that Lambda has joined', peers, async (t) => {
  const { code } = FRAMEWORKS.find(({ heading }) => heading === 'Serverless functions')!
  const project = await createProject(t, { 'handler.mjs': code })
  const { handler } = (await import(pathToFileURL(join(project, 'handler.mjs')).href)) as {
    handler: (event: object, context: object) => Promise<{ statusCode: number }>
  }

  async function create(headers: Readonly<Record<string, string>>) {
    const requestContext = { http: { method: 'POST', sourceIp: '127.0.0.1' } }
    const event = { version: '2.0', rawPath: '/plants', rawQueryString: '', headers, requestContext, body: plant(1) }
    return (await handler(event, {})).statusCode
  }

  const [authorization, type] = [`Bearer ${TOKEN}`, 'application/json']
  assert.equal(await create({ authorization, 'content-type': type }), 200)
  assert.equal(await create({ authorization: `${authorization},${authorization}`, 'content-type': type }), 401)
  assert.equal(await create({ authorization, 'content-type': `${type},${type}` }), 415)
})

suite('the HTTP/2 example', () => {
  const { code } = FRAMEWORKS.find(({ code }) => getProtocol(code) === 'h2')!

  test('sends 100 Continue only after it has accepted the token', async (t) => {
    const client = connectClient('h2', (await startExample(t, code)).port)
    t.after(() => client.close())
    for (const [token, status, isContinueExpected] of [
      [TOKEN, 200, true],
      ['another', 401, false],
    ] as const) {
      const stream = client.open(post(token, plant(1), ['Expect', '100-continue']))
      let hasContinue = false
      stream.once('continue', () => {
        hasContinue = true
        stream.end(plant(1))
      })
      const [received] = (await once(stream, 'response')) as [Record<string, unknown>]
      stream.destroy()
      assert.deepEqual([received[':status'], hasContinue], [status, isContinueExpected])
    }
  })

  test('survives a client that resets a stream with Expect: 100-continue immediately', async (t) => {
    const { port } = await startExample(t, code)
    const session = connect(`https://127.0.0.1:${port}`, { ca: TLS.cert })
    t.after(() => session.destroy())
    for (let i = 0; i < 50; i++) {
      const request = session.request({ ':method': 'POST', ':path': '/plants', expect: '100-continue' })
      request.on('error', () => undefined).close(constants.NGHTTP2_CANCEL)
    }
    const client = connectClient('h2', port)
    t.after(() => client.close())
    assert.equal((await client.send({ method: 'GET', path: '/plants', fields: bearer(TOKEN) })).status, 200)
  })
})
