import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { request, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http'
import { constants, type ClientHttp2Stream } from 'node:http2'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { serveStandalone } from '../support/program/test-listener.ts'
import { serveAndConnect, type Client } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { bearer, createService, getPort, servePlants } from '../support/wire/service.ts'

const MIB = 1024 * 1024
const ATTEMPTS = 5

const authenticate = (token: string): string | null => (token === 'refused' ? null : token)

/** Error codes of rejected uploads, each with a token and a Content-Type that cause the rejection. */
const REJECTIONS = [
  { error: 40101, token: 'refused', type: 'application/json' },
  { error: 41300, token: 'ada', type: 'application/json' },
  { error: 41500, token: 'ada', type: 'text/plain' },
] as const

type Rejection = (typeof REJECTIONS)[number]

/** Larger than what the service discards. */
const UPLOAD = Buffer.alloc(20 * 1000 * 1000, ' ')

const SERVERS: Readonly<Record<string, (t: TestContext) => Promise<Server>>> = {
  'node:http': (t) => servePlants(t, { authenticate }),
  'the standalone server': (t) => serveStandalone(t, { authenticate }),
}

/** Popular clients. Each sends the upload and returns the body of the response. */
const CLIENTS: Readonly<Record<string, (url: string, headers: Record<string, string>) => Promise<string>>> = {
  async 'node:http'(url, headers) {
    // Without a Content-Length, the service must count the bytes.
    const options = { method: 'POST', headers: { ...headers, 'Transfer-Encoding': 'chunked' }, agent: false }
    // The client is still sending when it gets the response, so its connection may be reset afterwards.
    const sent = request(url, options).on('error', () => undefined)
    sent.end(UPLOAD)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return text(response)
  },
  'fetch of a buffer': (url, headers) => fetch(url, { method: 'POST', headers, body: UPLOAD }).then((a) => a.text()),
  async 'fetch of a stream'(url, headers) {
    const body = new Blob([UPLOAD]).stream()
    return (await fetch(url, { method: 'POST', headers, body, duplex: 'half' })).text()
  },
  async curl(url, headers) {
    // Without `Expect: 100-continue`, curl sends the body immediately.
    const fields = Object.entries({ ...headers, Expect: '' }).flatMap(([name, value]) => ['-H', `${name}:${value}`])
    const running = promisify(execFile)('curl', ['--silent', '--show-error', '--data-binary', '@-', ...fields, url])
    running.child.stdin!.end(UPLOAD)
    return (await running).stdout
  },
}

suite('an early error response reaches a client that is still sending', () => {
  for (const [host, start] of Object.entries(SERVERS)) {
    for (const [client, upload] of Object.entries(CLIENTS)) {
      test(
        `${client} during an upload to ${host}`,
        { skip: client === 'curl' && skipWithoutCommand(client) },
        async (t) => {
          const url = `http://127.0.0.1:${getPort(await start(t))}/plants`
          for (const { error, token, type } of REJECTIONS) {
            const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type }
            for (let i = 1; i <= ATTEMPTS; i++)
              assert.equal(parseErrorCode(await upload(url, headers)), error, `in attempt ${i}`)
          }
        },
      )
    }
  }
})

function parseErrorCode(body: string): number {
  return (JSON.parse(body) as { error: number }).error
}

/** Asserts that the server has waited for the client for 2 s, or a little longer on a slow machine. */
function assertWaited(startedAt: number): void {
  const ms = performance.now() - startedAt
  assert.ok(ms > 1900 && ms < 20_000, `the server waited for ${ms} ms`)
}

/** Asserts that a stream has ended without an error, and that its connection accepts another stream. */
async function assertConnectionUsable(client: Client, stream: ClientHttp2Stream): Promise<void> {
  assert.deepEqual([stream.closed, stream.rstCode], [true, constants.NGHTTP2_NO_ERROR])
  assert.equal((await client.send({ method: 'PUT', path: '/plants', fields: bearer('ada') })).status, 405)
}

suite('the service after an early error response', { concurrency: true, timeout: 60_000 }, () => {
  for (const rejection of REJECTIONS) {
    const { error } = rejection

    test(`closes the connection after 2 s even if the client keeps sending (${error})`, async (t) => {
      const server = await servePlants(t, { authenticate })
      const startedAt = performance.now()
      const client = await RawConnection.open(server)
      const fields = [`Authorization: Bearer ${rejection.token}`, `Content-Type: ${rejection.type}`]
      client.send(`POST /plants HTTP/1.1\r\nHost: a\r\n${fields.join('\r\n')}\r\nContent-Length: 99999\r\n\r\n`)
      const timer = setInterval(() => client.send(' '), 50)
      t.after(() => clearInterval(timer))

      const [response] = await client.readResponses(1)
      await once(client.socket, 'close')
      assertWaited(startedAt)
      assert.equal(parseErrorCode(response!.body), error)
    })

    test(`closes the stream of an endless HTTP/2 body after 16 MiB, but not the connection (${error})`, async (t) => {
      const client = await serveHttp2(t)
      const startedAt = performance.now()
      const stream = openPost(client, rejection)
      const [body, closed] = [readBody(stream), once(stream, 'close')]

      let sent = 0
      const chunk = Buffer.alloc(65_536)
      const endless = new Readable({
        read() {
          sent += chunk.length
          this.push(chunk)
        },
      })
      endless.pipe(stream)

      assert.equal(parseErrorCode(await body), error)
      await closed
      // Node may read 2 MiB more in one event-loop tick. A slow machine may read less than 16 MiB in 2 s.
      const isTimeOver = performance.now() - startedAt > 1900
      assert.ok(sent < 18.5 * MIB && (sent > 15 * MIB || isTimeOver), `${sent} bytes were read`)
      await assertConnectionUsable(client, stream)
    })

    test(`closes the stream of an unfinished HTTP/2 body after 2 s, but not the connection (${error})`, async (t) => {
      const client = await serveHttp2(t)
      const startedAt = performance.now()
      const stream = openPost(client, rejection)
      stream.write(rejection.error === 41300 ? Buffer.alloc(65_537) : ' ')
      const body = readBody(stream)

      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
      await once(stream, 'end')
      assert.ok(!stream.closed, 'the client must get the complete response before the stream is reset')
      await once(stream, 'close')
      assertWaited(startedAt)
      assert.deepEqual([headers.connection, parseErrorCode(await body)], [undefined, error])
      await assertConnectionUsable(client, stream)
    })
  }
})

function serveHttp2(t: TestContext): Promise<Client> {
  return serveAndConnect(t, 'h2c', createService({ authenticate }))
}

/** Opens a POST, without sending its body. */
function openPost(client: Client, { token, type }: Rejection): ClientHttp2Stream {
  const fields = [...bearer(token), 'Content-Type', type]
  return client.open({ method: 'POST', path: '/plants', fields }) as unknown as ClientHttp2Stream
}

/** Reads a response, even if the client hasn't finished its request. */
async function readBody(stream: ClientHttp2Stream): Promise<string> {
  let body = ''
  stream.setEncoding('utf8').on('data', (text: string) => (body += text))
  await once(stream, 'end')
  return body
}
