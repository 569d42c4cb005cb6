import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse, type RequestListener } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough, Readable, type Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import { importPeer, skipWithoutPeers } from '../support/extra-packages.ts'
import { createService, get, post } from '../support/service.ts'

type Serverless = (listener: RequestListener) => (event: object, context: object) => Promise<Record<string, unknown>>

const PLANT = '{"id":9007199254740993,"name":"Férn 🌱"}'
const HEADERS = { authorization: 'Bearer ada', 'content-type': 'application/json' }

test('accepts a request of a serverless adapter, which has no rawHeaders', { skip: skipWithoutPeers }, async () => {
  const { default: serverless } = await importPeer<{ default: Serverless }>('serverless-http')
  const headers = { ...HEADERS, 'content-length': String(Buffer.byteLength(PLANT)) }
  const requestContext = { http: { method: 'POST', sourceIp: '127.0.0.1' } }
  const event = { version: '2.0', rawPath: '/plants', rawQueryString: '', headers, requestContext, body: PLANT }
  const { statusCode, body } = await serverless(createService())(event, {})
  assert.deepEqual([statusCode, body], [200, '{"name":"Férn 🌱"}'])
})

suite('accepts a request', () => {
  const requests: Readonly<Record<string, () => Readable>> = {
    'that is a stream without a socket': () => Readable.from([Buffer.from(PLANT)]),
    'that is a stream of strings': () => Readable.from([PLANT]),
    'whose socket is null': () => fill(new IncomingMessage(null as unknown as Socket)),
    'whose socket was never connected': () => fill(new IncomingMessage(new Socket())),
  }
  for (const [name, createRequest] of Object.entries(requests)) {
    test(name, async () => {
      const { method, path, fields } = post('ada', PLANT)
      const headers = Object.fromEntries(
        fields.flatMap((field, i) => (i % 2 === 0 ? [[field.toLowerCase(), fields[i + 1]]] : [])),
      )
      const request = Object.assign(createRequest(), { method, url: path, headers }) as IncomingMessage
      const response = new ServerResponse(request)
      const output = new PassThrough()
      response.assignSocket(output as Writable as Socket)
      response.on('finish', () => output.end())
      createService()(request, response)
      assert.match(await text(output), /^HTTP\/1\.1 200 OK\r\n[^]*\{"name":"Férn 🌱"\}/)
    })
  }
})

test('survives an error of a request that is a stream', async () => {
  const { method, path: url } = post('ada', '')
  const request = Object.assign(new Readable({ read: () => undefined }), { method, url, headers: HEADERS })
  createService()(request as IncomingMessage, new ServerResponse(request as IncomingMessage))
  setImmediate(() => request.destroy(new Error('The client has aborted the request.')))
  // Unlike `once`, this adds no listener for errors.
  await new Promise((resolve) => request.on('close', resolve))
})

test('ignores a request whose response the adapter has destroyed', () => {
  const { method, path: url } = get('ada')
  const request = Object.assign(new IncomingMessage(new Socket()), { method, url, headers: HEADERS })
  const tokens: string[] = []
  createService({ authenticate: (token) => void tokens.push(token) })(request, new ServerResponse(request).destroy())
  assert.deepEqual(tokens, [])
})

function fill(request: IncomingMessage): IncomingMessage {
  request.push(PLANT)
  request.push(null)
  return request
}
