import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { triggerOverloadGuard } from '../support/program/test-listener.ts'
import { waitUntil } from '../support/wait-until.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve as serveUntilEnd } from '../support/wire/service.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import type { Limits } from '../../src/http-server/limits.ts'

type Reader = (request: IncomingMessage) => Promise<string>

/** Ways to read a complete body. */
const READERS: Readonly<Record<string, Reader>> = {
  'data events': (request) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    return once(request, 'end').then(() => body)
  },
  'readable events': (request) => {
    let body = ''
    request.on('readable', () => {
      for (let chunk; (chunk = request.read() as Buffer | null) !== null;) body += chunk.toString()
    })
    return once(request, 'end').then(() => body)
  },
  'a loop of read()': async (request) => {
    let body = ''
    while (!request.complete || request.readableLength > 0) {
      body += String((request.read() as Buffer | null) ?? '')
      if (request.destroyed) throw new Error('aborted')
      await setImmediate()
    }
    return body
  },
  'for await': async (request) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    return body
  },
  'text()': text,
  'setEncoding and for await': (request) => text(request.setEncoding('utf8')),
  'toArray()': async (request) => Buffer.concat((await request.toArray()) as Buffer[]).toString(),
  'pipe()': (request) => text(request.pipe(new PassThrough())),
  'pipeline()': async (request) => {
    const sink = new PassThrough()
    const [body] = await Promise.all([text(sink), pipeline(request, sink)])
    return body
  },
  'Readable.toWeb()': (request) => text(Readable.toWeb(request)),
}

/** Creates a listener that responds with the request body. It starts to read immediately or in a later tick. */
function echo(read: Reader, isLater: boolean): RequestListener {
  return (request, response) => {
    async function respond(): Promise<void> {
      if (isLater) for (let tick = 0; tick < 5; tick++) await setImmediate()
      response.end(await read(request))
    }
    respond().catch(() => response.destroy())
  }
}

/** With `env` set to `test`, Express doesn't print errors. */
function createExpressApp(): RequestListener {
  const app = express().set('env', 'test')
  app.post('/', express.text({ type: () => true }), (request, response) => void response.send(request.body))
  return app
}

async function createFastifyApp(): Promise<RequestListener> {
  const app = fastify()
  app.addContentTypeParser('*', { parseAs: 'string' }, (_, body, done) => done(null, body))
  app.post('/', (request, reply) => reply.send(request.body))
  await app.ready()
  return (request, response) => app.routing(request, response)
}

function createKoaApp(): RequestListener {
  const app = new Koa()
  app.silent = true
  app.use(async (context) => {
    context.body = await text(context.req)
  })
  const respond = app.callback()
  return (request, response) => void respond(request, response)
}

function createHonoApp(): RequestListener {
  // Without `onError`, Hono prints an error for every aborted body.
  const app = new Hono().onError((_, context) => context.body(null, 500))
  app.post('/', async (context) => context.text(await context.req.text()))
  const respond = getRequestListener(app.fetch)
  return (request, response) => void respond(request, response)
}

/** Listeners that respond with the request body. */
const LISTENERS: Readonly<Record<string, RequestListener>> = {
  ...Object.fromEntries(
    Object.entries(READERS).flatMap(([name, read]) => [
      [`a listener that reads with ${name}`, echo(read, false)],
      [`a listener that reads with ${name} in a later tick`, echo(read, true)],
    ]),
  ),
  'an Express app': createExpressApp(),
  'a Fastify app': await createFastifyApp(),
  'a Koa app': createKoaApp(),
  'a Hono app': createHonoApp(),
}

async function serve(t: TestContext, listener: RequestListener, limits?: Partial<Limits>): Promise<HttpServer> {
  const http = createHttpServer(listener, { checkIntervalMs: 20, ...limits })
  await serveUntilEnd(t, http.server)
  return http
}

const POST = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`
const PARTIAL = `${POST}Content-Length: 10\r\n\r\nhello`
const BAD_REQUEST = /^HTTP\/1\.1 400 [^]*"error":40000,[^}]*}$/
const REQUEST_TIMEOUT = /^HTTP\/1\.1 408 [^]*"error":40800,[^}]*}$/

for (const [name, listener] of Object.entries(LISTENERS)) {
  suite(`a server with ${name}`, { timeout: 60_000 }, () => {
    test('delivers the complete body to the reader', async (t) => {
      const client = await RawConnection.open((await serve(t, listener)).server)
      const [response] = await client.send(PARTIAL + 'world').readResponses()
      assert.deepEqual([response!.status, response!.body], [200, 'helloworld'])
    })

    test('sends 100 Continue when the reader waits for the body', async (t) => {
      const client = await RawConnection.open((await serve(t, listener)).server)
      client.send(`${POST}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`)
      await client.waitFor(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
      assert.match(await client.send('hello').closed, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 [^]*hello$/)
    })

    test('rejects a malformed chunk with 400', async (t) => {
      const client = await RawConnection.open((await serve(t, listener)).server)
      assert.match(await client.send(`${CHUNKED}zz\r\n`).closed, BAD_REQUEST)
    })

    test('rejects a late body with 408', async (t) => {
      const client = await RawConnection.open((await serve(t, listener, { requestTimeoutMs: 100 })).server)
      assert.match(await client.send(PARTIAL).closed, REQUEST_TIMEOUT)
    })

    test('rejects an incomplete body with 400 if the client half-closes the connection', async (t) => {
      const client = await RawConnection.open((await serve(t, listener)).server)
      client.socket.end(PARTIAL)
      assert.match(await client.closed, BAD_REQUEST)
    })
  })
}

const neverRespond: RequestListener = () => undefined
const LARGE = `${POST}Content-Length: 1000000\r\n\r\n${'x'.repeat(900_000)}`

suite('a server whose listener neither reads nor responds', { timeout: 60_000 }, () => {
  for (const isGuarded of [false, true]) {
    const when = isGuarded ? ' while the overload guard is active' : ''
    for (const [what, sent, received] of [
      ['a malformed chunk', `${CHUNKED}zz\r\n`, BAD_REQUEST],
      ['a late body', PARTIAL, REQUEST_TIMEOUT],
      ['a late body that fills the buffers', LARGE, /^HTTP\/1\.1 408 /],
      [
        'a request that expects 100 Continue',
        `${POST}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
        REQUEST_TIMEOUT,
      ],
    ] as const) {
      test(`closes the connection after ${what}${when}`, async (t) => {
        // To activate the guard, the listener has to respond.
        let isResponding = isGuarded
        const listener: RequestListener = (_, response) => isResponding && response.end()
        const http = await serve(t, listener, { requestTimeoutMs: 100 })
        if (isGuarded) await triggerOverloadGuard(http.server)
        isResponding = false
        const client = await RawConnection.open(http.server)
        assert.match(await client.send(sent).closed, received)
        assert.equal(await http.drain(), 0)
      })
    }
  }

  test('frees the connections of malformed requests for new clients', async (t) => {
    const http = await serve(t, neverRespond, { requestTimeoutMs: 100, maxConnections: 20 })
    for (let round = 0; round < 2; round++) {
      const clients = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(http.server)))
      for (const client of clients) client.send(`${CHUNKED}zz\r\n`)
      for (const client of clients) assert.match(await client.closed, BAD_REQUEST)
      await waitUntil(() => http.connectionCount() === 0)
    }
  })
})

test(
  'a body that arrives in time is accepted even if the listener starts reading after the request timeout',
  { timeout: 60_000 },
  async (t) => {
    const late: unknown[] = []
    const http = await serve(
      t,
      (request, response) => {
        async function respond(): Promise<void> {
          await waitUntil(() => late.length > 0)
          response.end(String((await text(request)).length))
        }
        void respond()
      },
      { requestTimeoutMs: 1000 },
    )
    http.server.on('clientError', (error) => late.push(error))
    const client = await RawConnection.open(http.server)
    client.send(`${POST}Content-Length: 1000000\r\n\r\n${'x'.repeat(1_000_000)}`)
    assert.match(await client.closed, /^HTTP\/1\.1 200 [^]*1000000$/)
  },
)

suite('pipelined requests', { timeout: 60_000 }, () => {
  test('a queued request with a malformed body is rejected after the response to the previous request', async (t) => {
    const responses: ServerResponse[] = []
    const { server } = await serve(t, (_, response) => void responses.push(response), { requestTimeoutMs: 50 })
    const client = await RawConnection.open(server)
    let isClosed = false
    void client.closed.then(() => (isClosed = true))
    client.send(`GET / HTTP/1.1\r\nHost: a\r\n\r\n${CHUNKED}zz\r\n`)
    await waitUntil(() => responses.length === 1)
    for (const end = performance.now() + 200; performance.now() < end;) await setImmediate()
    assert.deepEqual([client.received, isClosed], ['', false])
    responses[0]!.end('first')
    assert.deepEqual(await client.readStatuses(), [200, 400])
  })
})

suite('a server whose listener responds without reading the body', { timeout: 60_000 }, () => {
  const listener: RequestListener = (_, response) => response.end('done')

  test('sends no 100 Continue', async (t) => {
    const client = await RawConnection.open((await serve(t, listener, { requestTimeoutMs: 100 })).server)
    client.send(`${POST}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`)
    assert.match(await client.closed, /^HTTP\/1\.1 200 [^]*done$/)
  })

  for (const [what, sent] of [
    ['a malformed chunk', `${CHUNKED}zz\r\n`],
    ['a late body', PARTIAL.replace('Connection: close\r\n', '')],
  ] as const) {
    test(`sends the response before ${what} closes the connection`, async (t) => {
      const client = await RawConnection.open((await serve(t, listener, { requestTimeoutMs: 100 })).server)
      assert.match(await client.send(sent).closed, /^HTTP\/1\.1 200 [^]*done$/)
    })
  }
})

suite('a listener that stops iterating over the body early', { timeout: 60_000 }, () => {
  for (const [what, options] of [
    ['can respond', undefined],
    ['with destroyOnReturn: false can respond before the rest of the body arrives', { destroyOnReturn: false }],
  ] as const) {
    for (const isGuarded of [false, true]) {
      test(`${what}${isGuarded ? ' while the overload guard is active' : ''}`, async (t) => {
        async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
          if (request.method === 'POST')
            for await (const chunk of request.iterator(options)) if (chunk !== undefined) break
          response.end('done')
        }
        const limits = { requestTimeoutMs: 200, keepAliveTimeoutMs: 50 }
        const http = await serve(t, (request, response) => void respond(request, response), limits)
        if (isGuarded) await triggerOverloadGuard(http.server)
        const client = await RawConnection.open(http.server)
        client.send(LARGE.replace('Connection: close\r\n', ''))
        await client.waitFor(/^HTTP\/1\.1 200 [^]*done$/)
        await waitUntil(() => http.connectionCount() === 0)
      })
    }
  }
})
