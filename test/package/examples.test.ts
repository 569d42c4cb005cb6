/** What the examples promise beside the contract, which frameworks.test.ts tries. */
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
import { skipWithoutPeers } from '../support/package/peers.ts'
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

/** Sends the rest of a body, and settles with the status and whether the connection goes on. */
async function finishBody(sent: Writable, rest: string): Promise<[status: number | undefined, isOpen: boolean]> {
  sent.end(rest)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return [response.statusCode, response.headers.connection !== 'close']
}

for (const { code: example, language } of SHUTDOWN_EXAMPLES) {
  const options = { skip: getSkipReason(example), timeout: 300_000 }
  test(`a server of a host ends without losing a request: ${language}`, options, async (t) => {
    const path = createDatabasePath(t).replace('plants.db', 'kept.db')
    const code = example.replace('plants.db', path).replace('7000', '500')
    const { port, child } = await startExample(t, code)
    const exited = once(child, 'exit')
    let id = 0

    /** Creates plants on one connection until it is told to go. */
    async function work(): Promise<void> {
      const client = connectClient('http', port)
      for (let isOpen = true; isOpen;) {
        const body = plant(++id)
        const [status, goesOn] = await finishBody(client.open(post(TOKEN, body)), body)
        assert.equal(status, 200)
        isOpen = goesOn
        if (id === 200) child.kill('SIGTERM')
      }
      client.close()
    }
    const slow = connectClient('http', port).open(post(TOKEN, plant(0), ['Connection', 'close']))
    slow.write('{')
    await Promise.all(Array.from({ length: CLIENTS }, work))

    // The server no longer listens, and this request is still under way.
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

test('the function for AWS Lambda answers, and sees no field twice', async (t) => {
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

const peers = { skip: skipWithoutPeers() }

test('the function for Cloud Functions keeps ids exact, and gets no JSON that is malformed', peers, async (t) => {
  const code = `import { getTestServer } from '@google-cloud/functions-framework/testing'
       ${CLOUD_FUNCTION}
       getTestServer('plants').listen(3000)`
  const { port } = await startExample(t, code)
  assert.equal((await sendToPort(port, post(TOKEN, PLANT))).body, '{"name":"Fern"}')
  assert.equal((await sendToPort(port, del(TOKEN, 9007199254740993n))).status, 204)
  const malformed = await sendToPort(port, post(TOKEN, '{'))
  assert.deepEqual([malformed.status, malformed.headers['content-type']], [400, 'text/html; charset=utf-8'])
})

test('the example in which Express keeps the bytes keeps ids exact', async (t) => {
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

/** Fills a TLS record before a frame with one of an unknown type. */
const createRecordPadding = (last: Buffer): Buffer => encodeFrame(0xfe, 0, 0, ' '.repeat(16_384 - 9 - last.length))

/**
 * Sends a request and what follows it in one packet, in a TLS record each. While Node writes the answer to the request,
 * it puts off what follows the data of that request. So it learns of a second one and of its reset at once.
 */
async function sendInOnePacket(port: number, request: Buffer, following: Buffer) {
  const tls = connect({ port, host: '127.0.0.1', ALPNProtocols: ['h2'], ca: TLS.cert })
  for (const sent of [[PREFACE], [createRecordPadding(request), request, following]]) {
    const question = randomBytes(8).toString('latin1')
    tls.write(Buffer.concat([...sent, encodeFrame(6, 0, 0, question)]))
    for await (const bytes of tls.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
      if (bytes.includes(question, 0, 'latin1')) break
  }
  tls.destroy()
}

test('the example with HTTP/2 goes on after a request is reset at once', async (t) => {
  const { port } = await startExample(t, HTTP2_EXAMPLE)
  const client = connectClient('h2', port)
  const request = { ':method': 'POST', ':path': '/plants', ':scheme': 'https', ':authority': 'localhost' }
  const good = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const waiting = { ...request, expect: '100-continue' }
  const requests = {
    'with a token': { ...request, ...good },
    'without a token': request,
    'with a token, that waits for 100 Continue': { ...waiting, ...good },
    'without a token, that waits for 100 Continue': waiting,
    'with an Expect that is none': { ...request, expect: 'more' },
  }
  for (const [name, fields] of Object.entries(requests)) {
    for (const code of [NO_ERROR, CANCEL]) {
      const reset = encodeFrame(3, 0, 3, `\0\0\0${String.fromCharCode(code)}`)
      const following = Buffer.concat([encodeFrame(0, 0, 1, '{"id":'), encodeHeaders(3, fields), reset])
      // Whether one does it depends on what the server is writing just then.
      for (let i = 0; i < 10; i++) await sendInOnePacket(port, encodeHeaders(1, waiting), following)
      assert.equal((await client.send(get(TOKEN))).status, 200, `${name}, ${code}`)
    }
  }
  client.close()
})

test('the example with HTTP/2 asks for the body only of a client that may send it', async (t) => {
  const client = connectClient('h2', (await startExample(t, HTTP2_EXAMPLE)).port)
  for (const [token, status, isWanted] of [
    [TOKEN, 200, true],
    ['another', 401, false],
  ] as const) {
    const plant = '{"id":1,"name":"Fern"}'
    const stream = client.open(post(token, plant, ['Expect', '100-continue']))
    let isAsked = false
    stream.once('continue', () => {
      isAsked = true
      stream.end(plant)
    })
    const [received] = (await once(stream, 'response')) as [Record<string, unknown>]
    stream.destroy()
    assert.deepEqual([received[':status'], isAsked], [status, isWanted])
  }
  client.close()
})

test('the example with HTTP/2 bounds open streams: 100, and none whose response is unread (resource exhaustion)', async (t) => {
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

test('the example with HTTP/2 closes idle connections (resource exhaustion)', async (t) => {
  const { port } = await startExample(t, HTTP2_EXAMPLE.replace('.setTimeout(60_000)', '.setTimeout(100)'))
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: TLS.cert })
  await once(session, 'close')
})

const GUARD_EXAMPLE = PROGRAMS.find(({ heading }) => heading === 'Path-based access checks')!.code
const PATH_GUARD_EXAMPLE = GUARD_EXAMPLE.replace(
  "'/api', rejectWrites,",
  "'/api/plants', rejectWrites)\napp.use('/api',",
)

suite('a guard in Express, which compares paths without decoding them (authorization bypass)', () => {
  for (const name of ['express', 'express-4']) {
    for (const [what, example, expected] of [
      ['rejects an encoded path if it is mounted with the service', GUARD_EXAMPLE, 403],
      ['misses an encoded path if it is mounted by path', PATH_GUARD_EXAMPLE, 40401],
    ] as const) {
      const code = example.replace("'express'", `'${name}'`)
      test(`${what} (${name})`, { skip: getSkipReason(code) }, async (t) => {
        const { port } = await startExample(t, code)
        /** The status, or the error code if the service responded. */
        async function resultOf(path: string): Promise<unknown> {
          const { status, body } = await sendToPort(port, { ...del(TOKEN, 1n), path })
          return body.startsWith('{') ? (JSON.parse(body) as { error: number }).error : status
        }
        for (const path of ['/api/plants/1', '/API/plants/1', 'http://a/api/plants/1', '/api/plants/1?x=/']) {
          assert.equal(await resultOf(path), 403, path)
        }
        for (const path of ['/api/%70lants/1', '/api/plant%73/%31', 'http://a/api/%70lants/1']) {
          assert.equal(await resultOf(path), expected, path)
        }
        for (const path of ['/%61pi/plants/1', '//api/plants/1', '/./api/plants/1', '/api%2Fplants/1']) {
          assert.equal(await resultOf(path), 404, path)
        }
        assert.equal((await sendToPort(port, get(TOKEN, '/api/plants'))).status, 200)
      })
    }
  }
})
