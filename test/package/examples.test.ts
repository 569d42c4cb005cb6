/** Tests what the examples do beyond the contract, which frameworks.test.ts tests. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2, constants } from 'node:http2'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { suite, test } from 'node:test'
import { connect } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { createDatabasePath, openSqlite } from '../support/database/sqlite-file.ts'
import { findPrograms, readDocument } from '../support/package/documents.ts'
import { FRAMEWORK_EXAMPLES, getProtocol, getSkipReason, startExample } from '../support/package/examples.ts'
import { createProject } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectClient } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { bearer, del, get, post, sendToPort } from '../support/wire/service.ts'
import { TLS } from '../support/wire/tls/certificate.ts'

const TOKEN = 'a-long-random-token'
const PROGRAMS = findPrograms(readDocument('docs/embedding.md'))

const SHUTDOWN_EXAMPLES = PROGRAMS.filter(({ heading }) => heading === 'Graceful shutdown')
const CLIENTS = 20

const plant = (id: number): string => `{"id":${id},"name":"Fern"}`

/** Sends the rest of a body. Resolves with the status and whether the connection stays open. */
async function finishBody(sent: Writable, rest: string): Promise<[status: number | undefined, isOpen: boolean]> {
  sent.end(rest)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return [response.statusCode, response.headers.connection !== 'close']
}

for (const { code: example, language } of SHUTDOWN_EXAMPLES) {
  const options = { skip: getSkipReason(example), timeout: 60_000 }
  test(`the example for a graceful shutdown completes all requests (${language})`, options, async (t) => {
    const path = createDatabasePath(t).replace('plants.db', 'kept.db')
    const code = example.replace('plants.db', path).replace('7000', '500')
    const { port, child } = await startExample(t, code)
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
    await Promise.all(Array.from({ length: CLIENTS }, createPlants))

    // The server no longer listens, but the slow request is still in flight.
    const isRefused = () => RawConnection.open(port).then(({ socket }) => !socket.destroy())
    await waitUntil(() => isRefused().catch(() => true))
    assert.deepEqual(await finishBody(slow, plant(0).slice(1)), [200, false])
    assert.deepEqual(await exited, [0, null])
    const [row] = openSqlite(t, path).prepare('SELECT count(*) AS plants FROM plants').all() as [{ plants: number }]
    assert.equal(row.plants, id + 1)
  })
}

const PLANT = '{"id":9007199254740993,"name":"Fern"}'
const [LAMBDA, CLOUD_FUNCTION] = ['AWS Lambda', 'Cloud Functions'].map(
  (name) => FRAMEWORK_EXAMPLES.find(({ heading }) => heading === name)!.code,
)

test('the AWS Lambda example rejects duplicate headers that AWS has merged', async (t) => {
  const project = await createProject(t, { 'handler.mjs': LAMBDA! })
  const { handler } = (await import(pathToFileURL(join(project, 'handler.mjs')).href)) as {
    handler: (event: object, context: object) => Promise<{ statusCode: number; body: string }>
  }

  async function call(headers: Readonly<Record<string, string>>, body?: string) {
    const requestContext = { http: { method: body === undefined ? 'GET' : 'POST', sourceIp: '127.0.0.1' } }
    const event = { version: '2.0', rawPath: '/plants', rawQueryString: '', headers, requestContext, body }
    const response = await handler(event, {})
    return [response.statusCode, response.body]
  }

  const [authorization, type] = [`Bearer ${TOKEN}`, 'application/json']
  assert.deepEqual(await call({ authorization, 'content-type': type }, PLANT), [200, '{"name":"Fern"}'])
  assert.deepEqual(await call({ authorization }), [200, '[{"name":"Fern"}]'])
  assert.equal((await call({ authorization: `${authorization},${authorization}` }))[0], 401)
  assert.equal((await call({ authorization, 'content-type': `${type},${type}` }, PLANT))[0], 415)
})

const peers = { skip: skipWithoutPeers }

test('the Cloud Functions example keeps ids beyond 2^53 exact', peers, async (t) => {
  const code = `import { getTestServer } from '@google-cloud/functions-framework/testing'
       ${CLOUD_FUNCTION}
       getTestServer('plants').listen(3000)`
  const { port } = await startExample(t, code)
  assert.equal((await sendToPort(port, post(TOKEN, PLANT))).body, '{"name":"Fern"}')
  assert.equal((await sendToPort(port, del(TOKEN, 9007199254740993n))).status, 204)
  const malformed = await sendToPort(port, post(TOKEN, '{'))
  assert.deepEqual([malformed.status, malformed.headers['content-type']], [400, 'text/html; charset=utf-8'])
})

test('the Express example with rawBody keeps ids beyond 2^53 exact', async (t) => {
  const { code } = PROGRAMS.find(({ code }) => code.includes('rawBody = '))!
  const { port } = await startExample(t, code)
  assert.equal((await sendToPort(port, { ...post(TOKEN, PLANT), path: '/api/plants' })).body, '{"name":"Fern"}')
  const path = '/api/plants/9007199254740993'
  assert.equal((await sendToPort(port, { method: 'DELETE', path, fields: bearer(TOKEN) })).status, 204)
})

const { NGHTTP2_NO_ERROR: NO_ERROR, NGHTTP2_CANCEL: CANCEL } = constants

const HTTP2_EXAMPLE = FRAMEWORK_EXAMPLES.find(({ code }) => getProtocol(code) === 'h2')!.code

function encodeFrame(type: number, flags: number, stream: number, payload: string): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUIntBE(type, 3, 1)
  head.writeUIntBE(flags, 4, 1)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, Buffer.from(payload, 'latin1')])
}

function encodeHeaders(stream: number, fields: Readonly<Record<string, string>>): Buffer {
  const text = (text: string): string => String.fromCharCode(text.length) + text
  const block = Object.entries(fields).map(([name, value]) => `\0${text(name)}${text(value)}`)
  return encodeFrame(1, 4, stream, block.join(''))
}

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), encodeFrame(4, 0, 0, '')])

/** Returns a frame of an unknown type that fills up the TLS record before the last frame. */
const createRecordPadding = (last: Buffer): Buffer => encodeFrame(0xfe, 0, 0, ' '.repeat(16_384 - 9 - last.length))

/**
 * Sends a request and the following frames in one packet, but in separate TLS records. While Node writes the response
 * to the request, it defers the following frames. So it processes a second request and its reset at the same time.
 */
async function sendInOnePacket(port: number, request: Buffer, following: Buffer) {
  const tls = connect({ port, host: '127.0.0.1', ALPNProtocols: ['h2'], ca: TLS.cert })
  for (const sent of [[PREFACE], [createRecordPadding(request), request, following]]) {
    const ping = randomBytes(8).toString('latin1')
    tls.write(Buffer.concat([...sent, encodeFrame(6, 0, 0, ping)]))
    for await (const bytes of tls.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
      if (bytes.includes(ping, 0, 'latin1')) break
  }
  tls.destroy()
}

test("the quota example rejects a plant beyond its owner's quota", async (t) => {
  const { code } = PROGRAMS.find(({ heading }) => heading === 'Quotas')!
  const { port } = await startExample(t, code.replace('100', '2'))
  const create = (id: number) => sendToPort(port, post(TOKEN, plant(id)))
  const [first, second, third] = [await create(1), await create(2), await create(3)]
  assert.deepEqual([first.status, second.status], [200, 200])
  assert.deepEqual([third.status, third.body], [400, '{"error":40002,"message":"You already have 2 plants."}'])
  assert.equal((await sendToPort(port, del(TOKEN, '1'))).status, 204)
  assert.equal((await create(3)).status, 200)
})

test('the HTTP/2 example survives requests that are reset immediately', async (t) => {
  const { port } = await startExample(t, HTTP2_EXAMPLE)
  const client = connectClient('h2', port)
  const request = { ':method': 'POST', ':path': '/plants', ':scheme': 'https', ':authority': 'localhost' }
  const good = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const expecting = { ...request, expect: '100-continue' }
  const requests = {
    'with a token': { ...request, ...good },
    'without a token': request,
    'with a token and Expect: 100-continue': { ...expecting, ...good },
    'without a token, with Expect: 100-continue': expecting,
    'with an unknown Expect': { ...request, expect: 'more' },
  }
  for (const [name, fields] of Object.entries(requests)) {
    for (const code of [NO_ERROR, CANCEL]) {
      const reset = encodeFrame(3, 0, 3, `\0\0\0${String.fromCharCode(code)}`)
      const following = Buffer.concat([encodeFrame(0, 0, 1, '{"id":'), encodeHeaders(3, fields), reset])
      // Repeated, because the effect depends on what the server is writing at that time.
      for (let i = 0; i < 10; i++) await sendInOnePacket(port, encodeHeaders(1, expecting), following)
      assert.equal((await client.send(get(TOKEN))).status, 200, `${name}, ${code}`)
    }
  }
  client.close()
})

test('the HTTP/2 example sends 100 Continue only after it has accepted the token', async (t) => {
  const client = connectClient('h2', (await startExample(t, HTTP2_EXAMPLE)).port)
  for (const [token, status, isContinueExpected] of [
    [TOKEN, 200, true],
    ['another', 401, false],
  ] as const) {
    const plant = '{"id":1,"name":"Fern"}'
    const stream = client.open(post(token, plant, ['Expect', '100-continue']))
    let hasContinue = false
    stream.once('continue', () => {
      hasContinue = true
      stream.end(plant)
    })
    const [received] = (await once(stream, 'response')) as [Record<string, unknown>]
    stream.destroy()
    assert.deepEqual([received[':status'], hasContinue], [status, isContinueExpected])
  }
  client.close()
})

test('the HTTP/2 example resets streams whose response is not read (resource exhaustion)', async (t) => {
  const { port } = await startExample(t, HTTP2_EXAMPLE.replace('60_000', '100'))
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: TLS.cert, settings: { initialWindowSize: 0 } })
  const stream = session.request({ ':path': '/plants', authorization: `Bearer ${TOKEN}` })
  const closed = once(
    stream.on('error', () => undefined),
    'close',
  )
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  await closed
  const limits = [session.remoteSettings.maxConcurrentStreams, stream.rstCode]
  session.destroy()
  assert.deepEqual([headers[':status'], ...limits], [200, 100, CANCEL])
})

test('the HTTP/2 example closes idle connections (resource exhaustion)', async (t) => {
  const { port } = await startExample(t, HTTP2_EXAMPLE.replace('.setTimeout(60_000)', '.setTimeout(100)'))
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: TLS.cert })
  await once(session, 'close')
})

const GUARD_EXAMPLE = PROGRAMS.find(({ heading }) => heading === 'Path-based access checks')!.code
const PATH_GUARD_EXAMPLE = GUARD_EXAMPLE.replace(
  "'/api', rejectWrites,",
  "'/api/plants', rejectWrites)\napp.use('/api',",
)

// Express matches paths without decoding them.
suite('a path-based access check in Express (authorization bypass)', () => {
  for (const name of ['express', 'express-4']) {
    for (const [behavior, example, expected] of [
      ['rejects an encoded path if it is mounted together with the service', GUARD_EXAMPLE, 403],
      ['is bypassed by an encoded path if it is mounted on /api/plants', PATH_GUARD_EXAMPLE, 200],
    ] as const) {
      const code = example.replace("'express'", `'${name}'`)
      test(`${behavior} (${name})`, { skip: getSkipReason(code) }, async (t) => {
        const { port } = await startExample(t, code)
        let id = 0
        const create = async (path: string) => (await sendToPort(port, { ...post(TOKEN, plant(++id)), path })).status
        for (const path of ['/api/plants', '/API/plants', 'http://a/api/plants', '/api/plants?x=/']) {
          assert.equal(await create(path), 403, path)
        }
        for (const path of ['/api/%70lants', '/api/plant%73', 'http://a/api/%70lants']) {
          assert.equal(await create(path), expected, path)
        }
        for (const path of ['/%61pi/plants', '//api/plants', '/./api/plants', '/api%2Fplants']) {
          assert.equal(await create(path), 404, path)
        }
        assert.equal((await sendToPort(port, get(TOKEN, '/api/plants'))).status, 200)
      })
    }
  }
})
