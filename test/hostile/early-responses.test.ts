/** Tests that clients see an error response even if they read only after they have sent a large body. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { createServer } from '../../src/http-server/create-server.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { serveAndConnect } from '../support/client.ts'
import { findFreePort } from '../support/find-free-port.ts'
import { startNginx } from '../support/proxies.ts'
import { connectPair } from '../support/raw-connection.ts'
import { bearer, createService, getPort, post, serve, servePlants } from '../support/service.ts'
import { TLS } from '../support/certificate.ts'

const ATTEMPTS = 5
const UPLOAD = Buffer.alloc(20_000_000, ' ')
const options = { authenticate: (token: string) => (token === 'refused' ? null : token) }

const REJECTIONS = [
  { error: 40101, token: 'refused', type: 'application/json' },
  { error: 41300, token: 'ada', type: 'application/json' },
  { error: 41500, token: 'ada', type: 'text/plain' },
] as const

/** Returns the port of a server. */
const SERVERS: Readonly<Record<string, (t: TestContext) => Promise<number>>> = {
  'node:http': async (t) => getPort(await servePlants(t, options)),
  'plant-store/server': async (t) => getPort(await serve(t, createServer(createService(options)).server)),
  'node:https': async (t) => getPort(await serve(t, createHttpsServer(TLS, createService(options)))),
  async nginx(t) {
    const upstream = getPort(await serve(t, createServer(createService(options)).server))
    const port = await findFreePort()
    const location = `proxy_pass http://127.0.0.1:${upstream}; proxy_http_version 1.1; proxy_request_buffering off;`
    await startNginx(t, port, `server { listen 127.0.0.1:${port}; client_max_body_size 0; location / { ${location} } }`)
    return port
  },
}

/** Sends a request and its body on a new connection, and begins to read the response only then. */
async function uploadThenRead(port: number, isTls: boolean, head: string): Promise<string> {
  const socket = isTls
    ? connectTls({ port, host: '127.0.0.1', ca: TLS.cert, servername: 'localhost' })
    : connectTcp(port, '127.0.0.1')
  let received = ''
  const closed = new Promise<void>((resolve) => socket.on('close', resolve).on('error', () => resolve()))
  await once(socket, isTls ? 'secureConnect' : 'connect')
  socket.write(head)
  await new Promise((resolve) => socket.write(UPLOAD, resolve))
  const answered = new Promise<void>((resolve) =>
    socket.on('data', (data: Buffer) => {
      received += data.toString('latin1')
      if (received.endsWith('}')) resolve()
    }),
  )
  await Promise.race([answered, closed])
  socket.destroy()
  return received
}

suite('a client that reads only after it has sent 20 MB sees the status', { timeout: 120_000 }, () => {
  for (const [name, start] of Object.entries(SERVERS)) {
    for (const framing of [
      `Content-Length: ${UPLOAD.length}\r\n\r\n`,
      `Transfer-Encoding: chunked\r\n\r\n1312d00\r\n`,
    ]) {
      const skip = name === 'nginx' && skipWithoutCommand('nginx')
      test(`of ${name}, in ${ATTEMPTS} of ${ATTEMPTS} attempts, with ${framing.split(':')[0]}`, { skip }, async (t) => {
        const port = await start(t)
        const head = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer refused\r\nContent-Type: application/json\r\n${framing}`
        for (let i = 0; i < ATTEMPTS; i++) {
          assert.match(await uploadThenRead(port, name === 'node:https', head), /^HTTP\/1\.1 401 [^]*"error":40101/)
        }
      })
    }
  }
})

test('a client whose upload is rejected during a drain sees the status', { timeout: 60_000 }, async (t) => {
  const http = createServer(createService(options))
  http.server.on('connection', () => void http.drain())
  const head = `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: ${UPLOAD.length}\r\n\r\n`
  assert.match(await uploadThenRead(getPort(await serve(t, http.server)), false, head), /^HTTP\/1\.1 401 [^]*close/)
})

const PYTHON = `
import http.client, sys
connection = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
connection.request('POST', '/plants', b' ' * ${UPLOAD.length}, {'Authorization': sys.argv[2], 'Content-Type': sys.argv[3]})
print(connection.getresponse().read().decode())`

async function uploadWithAgent(port: number, authorization: string, type: string, agent: Agent): Promise<string> {
  const headers = { Authorization: authorization, 'Content-Type': type, 'Transfer-Encoding': 'chunked' }
  const sent = request({ port, host: '127.0.0.1', method: 'POST', path: '/plants', headers, agent }).end(UPLOAD)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const body = await text(response)
  agent.destroy()
  return body
}

/** Each sends the upload, and returns the body of the response. */
const CLIENTS: Readonly<Record<string, (port: number, authorization: string, type: string) => Promise<string>>> = {
  'http.request': (port, authorization, type) =>
    uploadWithAgent(port, authorization, type, new Agent({ keepAlive: true })),
  'http.request with Connection: close': (port, authorization, type) =>
    uploadWithAgent(port, authorization, type, new Agent({ keepAlive: false })),
  async fetch(port, authorization, type) {
    const headers = { Authorization: authorization, 'Content-Type': type }
    const url = `http://127.0.0.1:${port}/plants`
    return (await fetch(url, { method: 'POST', headers, body: UPLOAD })).text()
  },
  async curl(port, authorization, type) {
    const fields = [`Authorization: ${authorization}`, `Content-Type: ${type}`, 'Expect:'].flatMap((field) => [
      '-H',
      field,
    ])
    const args = ['--silent', '--show-error', '--data-binary', '@-', ...fields, `http://127.0.0.1:${port}/plants`]
    const running = promisify(execFile)('curl', args)
    running.child.stdin!.end(UPLOAD)
    return (await running).stdout
  },
  async python3(port, authorization, type) {
    return (await promisify(execFile)('python3', ['-c', PYTHON, String(port), authorization, type])).stdout
  },
}

for (const [name, upload] of Object.entries(CLIENTS)) {
  const skip = ['curl', 'python3'].includes(name) && skipWithoutCommand(name)
  suite(`${name} sees the status of an early response`, { skip, timeout: 120_000 }, () => {
    for (const [server, start] of Object.entries(SERVERS)) {
      // nginx itself resets a connection that the client asked to close.
      if (server === 'node:https' || (server === 'nginx' && name.endsWith('close'))) continue
      test(`of ${server}`, { skip: server === 'nginx' && skipWithoutCommand('nginx') }, async (t) => {
        const port = await start(t)
        for (const { error, token, type } of REJECTIONS) {
          const body = JSON.parse(await upload(port, `Bearer ${token}`, type)) as { error: number }
          assert.equal(body.error, error)
        }
      })
    }
  })
}

test('a client that sends forever is disconnected after the request timeout', { timeout: 60_000 }, async (t) => {
  const http = createServer(createService(options), { requestTimeoutMs: 1000 })
  const { client, accepted } = await connectPair(await serve(t, http.server))
  const closed = once(accepted, 'close')
  client.send(
    `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
  const send = (): unknown => client.socket.writable && client.socket.write(chunk, send)
  send()
  await client.waitFor(/^HTTP\/1\.1 401 [^]*}$/)
  assert.ok(!client.received.includes('\r\nConnection: close'))
  await closed
})

test(
  'a rejected HEAD request with Connection: close gets a response without a body',
  { timeout: 60_000 },
  async (t) => {
    const { client, accepted } = await connectPair(await servePlants(t, options))
    const closed = once(accepted, 'close')
    client.send('HEAD /plants HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\na')
    await client.waitFor(/^HTTP\/1\.1 401 [^]*\r\n\r\n$/)
    client.send('a')
    await closed
  },
)

test('the connection accepts another request after the rest of the body', { timeout: 60_000 }, async (t) => {
  const { client } = await connectPair(await servePlants(t, options))
  const head = `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: ${UPLOAD.length}\r\n\r\n`
  const responses = client.readStatuses(2)
  client.send(head).send(UPLOAD).send('OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.deepEqual(await responses, [401, 204])
  client.socket.destroy()
})

test('an HTTP/2 connection stays usable after an early response', { timeout: 60_000 }, async (t) => {
  const client = await serveAndConnect(t, 'h2c', createService(options))
  assert.equal((await client.send(post('refused', UPLOAD.subarray(0, 1_000_000)))).status, 401)
  assert.equal((await client.send({ method: 'PUT', path: '/plants', fields: bearer('ada') })).status, 405)
})
