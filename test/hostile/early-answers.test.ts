import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http'
import { connect, constants, createServer, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { openBoth, RawConnection } from '../support/raw-connection.ts'
import { close, createService, get, listen, portOf, send, servePlants } from '../support/service.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

/** More than the service throws away. */
const UPLOAD = Buffer.alloc(20 * 1000 * 1000, ' ')

const TRIES = 20

/** Why an upload is refused, by the error that says so. */
const REFUSALS = [
  { error: 40101, token: 'refused', type: 'application/json' },
  { error: 41300, token: 'ada', type: 'application/json' },
  { error: 41500, token: 'ada', type: 'text/plain' },
] as const

type Refusal = (typeof REFUSALS)[number]

function urlOf(server: Server): string {
  return `http://127.0.0.1:${portOf(server)}/plants`
}

/** Sends the upload and returns the answer's body. */
type Upload = (server: Server, refusal: Refusal) => Promise<string>

const authenticate = (token: string): string | null => (token === 'refused' ? null : token)

const uploadByHttp: Upload = (server, { token, type }) =>
  new Promise((resolve, reject) => {
    // In chunks: that it is over the limit shows only by counting.
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type, 'Transfer-Encoding': 'chunked' }
    let isAnswered = false
    httpRequest(urlOf(server), { method: 'POST', headers, agent: false }, (response) => {
      isAnswered = true
      let body = ''
      response
        .setEncoding('utf8')
        .on('data', (text: string) => (body += text))
        .on('end', () => resolve(body))
    })
      // Once the client has the answer it may well meet a reset: it is still sending.
      .on('error', (error) => (isAnswered ? undefined : reject(error)))
      .end(UPLOAD)
  })

const uploadByFetch: Upload = async (server, { token, type }) => {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type }
  const response = await fetch(urlOf(server), { method: 'POST', headers, body: UPLOAD })
  return response.text()
}

function uploadByCurl(file: string): Upload {
  return async (server, { token, type }) => {
    // Without the Expect field, for curl would wait for leave to send.
    const fields = ['-H', `Authorization: Bearer ${token}`, '-H', `Content-Type: ${type}`, '-H', 'Expect:']
    const args = ['--silent', '--data-binary', `@${file}`, ...fields, urlOf(server)]
    return (await promisify(execFile)('curl', args)).stdout
  }
}

async function assertSeen(t: TestContext, upload: Upload): Promise<void> {
  const server = await servePlants(t, { authenticate })
  for (const refusal of REFUSALS.slice(0, 2)) {
    await t.test(`${refusal.error}`, async () => {
      for (let i = 1; i <= TRIES; i++) {
        const { error } = JSON.parse(await upload(server, refusal)) as { error: number }
        assert.equal(error, refusal.error, `in try ${i}`)
      }
    })
  }
}

suite('an upload that is refused while it is sent: each client sees why', { concurrency: true }, () => {
  test('node:http', (t) => assertSeen(t, uploadByHttp))

  test('fetch', (t) => assertSeen(t, uploadByFetch))

  const isCurlHere = spawnSync('curl', ['--version']).status === 0
  test('curl', { skip: isCurlHere ? false : 'curl is not installed' }, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'plant-store-'))
    t.after(() => rm(directory, { recursive: true }))
    const file = join(directory, 'upload')
    await writeFile(file, UPLOAD)
    await assertSeen(t, uploadByCurl(file))
  })
})

/** Sends the header of a POST and gives both ends of its connection. */
async function openPost(
  server: Server,
  { token, type }: Refusal,
  length: string,
): Promise<{ client: RawConnection; accepted: Socket }> {
  const { client, accepted } = await openBoth(server)
  const fields = [`Authorization: Bearer ${token}`, `Content-Type: ${type}`, length]
  client.send(`POST /plants HTTP/1.1\r\nHost: a\r\n${fields.join('\r\n')}\r\n\r\n`)
  return { client, accepted }
}

/** Sends the same bytes again and again, as fast as they are taken, and counts those that were. */
function sendForEver(writable: Writable, bytes: Buffer): { readonly taken: number } {
  const counter = { taken: 0 }
  function count(error?: Error | null): void {
    if (error === undefined || error === null) counter.taken += bytes.length
  }
  function send(): void {
    while (writable.writable && writable.write(bytes, count));
  }
  writable.on('drain', send)
  send()
  return counter
}

function errorOf(body: string): number {
  return (JSON.parse(body) as { error: number }).error
}

/**
 * Asserts that no more than the bound was read, and less only if a slow machine did not come to it in 2 s. Beyond the
 * bound come the 2 MiB that Node reads in one turn of the event loop, what was read before the refusal, and framing.
 */
function assertBound(bytes: number, startedAt: number): void {
  const isTimeOver = performance.now() - startedAt > 1900
  assert.ok(bytes < 18.5 * MIB && (bytes > 15 * MIB || isTimeOver), `${bytes} bytes were read`)
}

suite('what arrives after an early answer', { concurrency: true, timeout: 60_000 }, () => {
  for (const refusal of REFUSALS) {
    const { error } = refusal

    test(`is read up to 16 MiB: ${error}`, async (t) => {
      const server = await servePlants(t, { authenticate })
      const startedAt = performance.now()
      const { client, accepted } = await openPost(server, refusal, 'Transfer-Encoding: chunked')
      const answers = client.answers()

      sendForEver(client.socket, Buffer.from(`10000\r\n${' '.repeat(65_536)}\r\n`))

      const seen = (await answers).map(({ body, headers }) => [errorOf(body), headers.get('connection')])
      assert.deepEqual(seen, [[error, 'close']])
      assertBound(accepted.bytesRead, startedAt)
    })

    test(`resets no client that reads only when it has sent all: ${error}`, async (t) => {
      const server = await servePlants(t, { authenticate })
      const { client } = await openPost(server, refusal, 'Content-Length: 8000000')

      await new Promise((resolve) => client.socket.pause().write(UPLOAD.subarray(0, 8_000_000), resolve))

      client.socket.resume()
      assert.deepEqual(
        (await client.answers()).map(({ body }) => errorOf(body)),
        [error],
      )
    })

    for (const [pace, bytes] of [
      ['stalls', ''],
      ['sends a byte now and then', ' '],
    ] as const) {
      test(`is waited for at most 2 s if the client ${pace}: ${error}`, async (t) => {
        const server = await servePlants(t, { authenticate })
        const startedAt = performance.now()
        const { client } = await openPost(server, refusal, `Content-Length: ${UPLOAD.length}`)
        const timer = setInterval(() => client.send(bytes), 50)
        t.after(() => clearInterval(timer))

        const [answer] = await client.answers(1)
        await once(client.socket, 'close')
        const ms = performance.now() - startedAt

        assert.equal(errorOf(answer!.body), error)
        assert.ok(ms > 1900 && ms < 20_000, `the connection was kept for ${ms} ms`)
      })
    }

    test(`is read up to 16 MiB in HTTP/2, and the connection serves on: ${error}`, async (t) => {
      const session = await connectHttp2(t)
      const startedAt = performance.now()
      const stream = openStream(session, refusal)
      const body = readAll(stream)

      const sent = sendForEver(stream, Buffer.alloc(65_536))

      assert.equal(errorOf(await body), error)
      assert.deepEqual([stream.closed, stream.rstCode], [true, constants.NGHTTP2_NO_ERROR])
      assertBound(sent.taken, startedAt)
      assert.equal(errorOf(await readAll(openStream(session, REFUSALS[0]).end())), REFUSALS[0].error)
    })

    test(`is waited for at most 2 s in HTTP/2, and the connection serves on: ${error}`, async (t) => {
      const session = await connectHttp2(t)
      const startedAt = performance.now()
      const stream = openStream(session, refusal)
      stream.write(refusal.error === 41300 ? Buffer.alloc(65_537) : ' ')
      const body = readAll(stream)

      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
      await once(stream, 'end')
      const ms = performance.now() - startedAt

      assert.equal(headers.connection, undefined)
      assert.equal(errorOf(await body), error)
      assert.ok(ms > 1900 && ms < 20_000, `the stream was kept for ${ms} ms`)
      assert.deepEqual([stream.closed, stream.rstCode], [true, constants.NGHTTP2_NO_ERROR])
      assert.equal(errorOf(await readAll(openStream(session, REFUSALS[0]).end())), REFUSALS[0].error)
    })
  }

  test('ends the answer when it ends', async (t) => {
    const server = await servePlants(t, { authenticate })
    const { client } = await openPost(server, REFUSALS[0], 'Content-Length: 5')
    await client.answers(1)
    const startedAt = performance.now()

    client.send('12345')
    await once(client.socket, 'close')

    assert.ok(performance.now() - startedAt < 1900)
  })

  test('holds up no answer without a body', async (t) => {
    const server = await servePlants(t, { authenticate })
    const client = await RawConnection.open(server)
    const startedAt = performance.now()

    client.send('HEAD /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n')

    assert.match(String(await once(client.socket, 'data')), /^HTTP\/1.1 401 /)
    assert.ok(performance.now() - startedAt < 1900)
    client.socket.destroy()
  })

  test('is nothing if the body came with the header: the connection is kept', async (t) => {
    const server = await servePlants(t, { authenticate })
    const client = await RawConnection.open(server)
    const answers = client.answers(3)

    client.send('POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345'.repeat(3))

    assert.deepEqual(
      (await answers).map(({ status }) => status),
      [401, 401, 401],
    )
    client.socket.destroy()
  })

  test('is of no concern once the client has gone', async (t) => {
    const server = await servePlants(t, { authenticate })
    const { client, accepted } = await openPost(server, REFUSALS[0], 'Content-Length: 5')
    await client.answers(1)

    client.socket.resetAndDestroy()

    await until(() => accepted.closed)
    assert.equal((await send(server, get('ada'))).status, 200)
  })
})

/** Connects to a service over HTTP/2. */
async function connectHttp2(t: TestContext): Promise<ClientHttp2Session> {
  const server = createServer(createService({ authenticate }))
  await listen(server)
  const session = connect(`http://127.0.0.1:${portOf(server)}`)
  t.after(() => {
    session.destroy()
    return close(server)
  })
  return session
}

/** Sends the header of a POST. */
function openStream(session: ClientHttp2Session, { token, type }: Refusal): ClientHttp2Stream {
  const headers = { authorization: `Bearer ${token}`, 'content-type': type }
  return session.request({ ':method': 'POST', ':path': '/plants', ...headers })
}

/** Reads an answer, whether the client has sent its body or not. */
async function readAll(stream: ClientHttp2Stream): Promise<string> {
  let body = ''
  stream.setEncoding('utf8').on('data', (text: string) => (body += text))
  await once(stream, 'end')
  return body
}
