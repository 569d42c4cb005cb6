/** What the examples promise beside the contract, which hosts.test.ts tries. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { newPath, open } from '../support/database/sqlite-file.ts'
import { programsOf, readDocument } from '../support/package/documents.ts'
import { HOST_EXAMPLES, protocolOf, skipExample, startExample } from '../support/package/examples.ts'
import { createProject } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { until } from '../support/until.ts'
import { connectTo } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { bearer, del, get, post, sendTo } from '../support/wire/service.ts'
import { TLS } from '../support/wire/tls/certificate.ts'

const TOKEN = 'a-long-random-token'
const PROGRAMS = programsOf(readDocument('docs/hosts.md'))

const CLOSING = PROGRAMS.filter(({ heading }) => heading.startsWith('Stop a server'))
const CLIENTS = 20

const plant = (id: number): string => `{"id":${id},"name":"Fern"}`

/** Sends the rest of a body, and settles with the status and whether the connection goes on. */
async function finish(sent: Writable, rest: string): Promise<[status: number | undefined, isOpen: boolean]> {
  sent.end(rest)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return [response.statusCode, response.headers.connection !== 'close']
}

for (const { code: example, language } of CLOSING) {
  const options = { skip: skipExample(example), timeout: 60_000 }
  test(`a server of a host ends without losing a request: ${language}`, options, async (t) => {
    const path = newPath(t).replace('plants.db', 'kept.db')
    const code = example.replace('plants.db', path).replace('7000', '500')
    const { port, child } = await startExample(t, code)
    const exited = once(child, 'exit')
    let id = 0

    /** Creates plants on one connection until it is told to go. */
    async function work(): Promise<void> {
      const client = connectTo('http', port)
      for (let isOpen = true; isOpen;) {
        const body = plant(++id)
        const [status, goesOn] = await finish(client.open(post(TOKEN, body)), body)
        assert.equal(status, 200)
        isOpen = goesOn
        if (id === 200) child.kill('SIGTERM')
      }
      client.close()
    }
    const slow = connectTo('http', port).open(post(TOKEN, plant(0), ['Connection', 'close']))
    slow.write('{')
    await Promise.all(Array.from({ length: CLIENTS }, work))

    // The server no longer listens, and this request is still under way.
    const isRefused = () => RawConnection.open(port).then(({ socket }) => !socket.destroy())
    await until(() => isRefused().catch(() => true))
    assert.deepEqual(await finish(slow, plant(0).slice(1)), [200, false])
    assert.deepEqual(await exited, [0, null])
    const [row] = open(t, path).prepare('SELECT count(*) AS plants FROM plants').all() as [{ plants: number }]
    assert.equal(row.plants, id + 1)
  })
}

const PLANT = '{"id":9007199254740993,"name":"Fern"}'
const [LAMBDA, CLOUD_FUNCTION] = ['AWS Lambda', 'Cloud Functions'].map(
  (name) => HOST_EXAMPLES.find(({ heading }) => heading === name)!.code,
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
  assert.equal((await sendTo(port, post(TOKEN, PLANT))).body, '{"name":"Fern"}')
  assert.equal((await sendTo(port, del(TOKEN, 9007199254740993n))).status, 204)
  const malformed = await sendTo(port, post(TOKEN, '{'))
  assert.deepEqual([malformed.status, malformed.headers['content-type']], [400, 'text/html; charset=utf-8'])
})

test('the example in which Express keeps the bytes keeps ids exact', async (t) => {
  const { code } = PROGRAMS.find(({ code }) => code.includes('rawBody = '))!
  const { port } = await startExample(t, code)
  assert.equal((await sendTo(port, { ...post(TOKEN, PLANT), path: '/api/plants' })).body, '{"name":"Fern"}')
  const path = '/api/plants/9007199254740993'
  assert.equal((await sendTo(port, { method: 'DELETE', path, fields: bearer(TOKEN) })).status, 204)
})

const { NGHTTP2_NO_ERROR: NO_ERROR, NGHTTP2_CANCEL: CANCEL } = constants

const RECIPE = HOST_EXAMPLES.find(({ code }) => protocolOf(code) === 'h2')!.code

function frame(type: number, flags: number, stream: number, payload: string): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUIntBE(type, 3, 1)
  head.writeUIntBE(flags, 4, 1)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, Buffer.from(payload, 'latin1')])
}

function headers(stream: number, fields: Readonly<Record<string, string>>): Buffer {
  const text = (text: string): string => String.fromCharCode(text.length) + text
  const block = Object.entries(fields).map(([name, value]) => `\0${text(name)}${text(value)}`)
  return frame(1, 4, stream, block.join(''))
}

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, '')])

/** Fills a TLS record before a frame with one of an unknown type. */
const fillRecord = (last: Buffer): Buffer => frame(0xfe, 0, 0, ' '.repeat(16_384 - 9 - last.length))

/**
 * Sends a request and what follows it in one packet, in a TLS record each. While Node writes the answer to the request,
 * it puts off what follows the data of that request. So it learns of a second one and of its reset at once.
 */
async function sendAtOnce(port: number, request: Buffer, following: Buffer) {
  const tls = connect({ port, host: '127.0.0.1', ALPNProtocols: ['h2'], ca: TLS.cert })
  for (const sent of [[PREFACE], [fillRecord(request), request, following]]) {
    const question = randomBytes(8).toString('latin1')
    tls.write(Buffer.concat([...sent, frame(6, 0, 0, question)]))
    for await (const bytes of tls.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
      if (bytes.includes(question, 0, 'latin1')) break
  }
  tls.destroy()
}

test('the example with HTTP/2 goes on after a request is reset at once', async (t) => {
  const { port } = await startExample(t, RECIPE)
  const client = connectTo('h2', port)
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
      const reset = frame(3, 0, 3, `\0\0\0${String.fromCharCode(code)}`)
      const following = Buffer.concat([frame(0, 0, 1, '{"id":'), headers(3, fields), reset])
      // Whether one does it depends on what the server is writing just then.
      for (let i = 0; i < 10; i++) await sendAtOnce(port, headers(1, waiting), following)
      assert.equal((await client.send(get(TOKEN))).status, 200, `${name}, ${code}`)
    }
  }
  client.close()
})

test('the example with HTTP/2 asks for the body only of a client that may send it', async (t) => {
  const client = connectTo('h2', (await startExample(t, RECIPE)).port)
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
