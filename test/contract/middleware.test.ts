import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import express from 'express'
import { createPlantStore, type PlantStore, type ResponseEvent } from '../../src/index.ts'
import { createProcessClock } from '../support/event-loop.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { waitUntil } from '../support/wait-until.ts'
import { close, listen, getPort, post, type TestResponse } from '../support/wire/service.ts'
import { authenticate, CONTRACT_CASES } from './contract-cases.ts'
import { checkCases, type MountPoint, type ComparedResponse } from './check-cases.ts'
import { connectClient, decodeBody, type Client } from '../support/wire/client.ts'
import { createLongListStore, getFirstPageBytes, getWithEncoding, LIST_SIZES, LIST_BODIES } from './long-lists.ts'
import { CHAINS, type MiddlewareChain } from './middleware.ts'

/** Puts a chain before a service. */
function mountBehind({ handlers }: MiddlewareChain, plantStore: PlantStore): RequestListener {
  const app = express().disable('x-powered-by')
  for (const handler of handlers) app.use(handler)
  return app.use((request, response) => plantStore(request, response)) as RequestListener
}

/** What a chain may change of every response. */
const CODING_FIELDS = /^content-(?:length|encoding)$/

function omitHeaders(headers: TestResponse['headers'], names: readonly RegExp[]): TestResponse['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.some((pattern) => pattern.test(name))))
}

/** What the service itself answered. The length is right or left out; what a chain adds is there. */
function omitAddedFields({ addedFields: adds }: MiddlewareChain, answer: ComparedResponse): ComparedResponse {
  const { headers, body } = answer
  if (body !== '') {
    assert.ok([undefined, String(Buffer.byteLength(body))].includes(headers['content-length']))
    for (const added of adds)
      assert.ok(
        Object.keys(headers).some((name) => added.test(name)),
        String(added),
      )
  }
  return { ...answer, headers: omitHeaders(headers, [CODING_FIELDS, ...adds]) }
}

// One of them says that listeners pile up. Another one says that a list broke off, as it must.
const warnings: Error[] = []
process.on('warning', (warning) => warning.name === 'PlantStoreWarning' || warnings.push(warning))
after(() => assert.deepEqual(warnings, []))

for (const chain of CHAINS) {
  suite(`Behind ${chain.name}`, { timeout: 300_000 }, () => {
    const store = createLongListStore()
    let server: Server
    let client: Client
    let response: ServerResponse
    let responded: ((event: ResponseEvent) => void) | undefined
    before(async () => {
      const plantStore = createPlantStore({ authenticate, store, onResponse: (event) => responded?.(event) })
      server = createServer(mountBehind(chain, plantStore))
      server.prependListener('request', (_, created) => (response = created))
      await listen(server)
      client = connectClient('http', getPort(server))
    })
    after(() => {
      client.close()
      return close(server)
    })

    const place: MountPoint = {
      prefix: '',
      isHttp1: true,
      fields: ['Accept-Encoding', 'gzip'],
      expected: ({ status, headers, body }) => ({ status, headers: omitHeaders(headers, [CODING_FIELDS]), body }),
      normalize: (answer) => omitAddedFields(chain, answer),
    }
    test('answers as the contract says', async () => {
      for (const [group, rows] of Object.entries(CONTRACT_CASES)) await checkCases(client, group, rows, place)
    })

    for (const owner of ['some', 'more'] as const) {
      for (const coding of ['identity', 'gzip', 'br']) {
        test(`sends a list of ${LIST_SIZES[owner]} plants whole, for ${coding}`, async () => {
          const answer = await client.send(getWithEncoding(owner, coding))

          const { status, headers, body } = omitAddedFields(chain, answer)
          assert.deepEqual(
            { status, headers },
            { status: 200, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' } },
          )
          assert.ok(
            body === LIST_BODIES.get(owner),
            `${body.length} characters in place of ${LIST_BODIES.get(owner)!.length}`,
          )
        })
      }
    }

    test('cuts a list that fails, and says so', async () => {
      const told = new Promise<ResponseEvent>((resolve) => (responded = resolve))
      await assert.rejects(client.send(getWithEncoding('failing', 'gzip')), { code: 'ECONNRESET' })
      const { status, bytes, complete } = await told
      assert.deepEqual({ status, bytes, complete }, { status: 200, bytes: getFirstPageBytes('some'), complete: false })
    })

    test('ends a list when its client reads nothing and leaves', { timeout: 300_000 }, async () => {
      const told = new Promise<ResponseEvent>((resolve) => (responded = resolve))
      const request = client.open(getWithEncoding('endless', 'gzip'))
      request.on('error', () => undefined).end()
      await once(request, 'response')
      await waitUntil(() => response.writableNeedDrain)

      request.destroy()

      const { status, complete } = await told
      assert.deepEqual({ status, complete }, { status: 200, complete: false })
    })

    test('carries out what a connection pipelines in order', { timeout: 300_000 }, async () => {
      const connection = await RawConnection.open(server)
      const fields = 'Host: a\r\nAuthorization: Bearer pipelining\r\nAccept-Encoding: gzip\r\n'
      const plant = '{"id":1,"name":"Fern"}'
      const create = `POST /plants HTTP/1.1\r\n${fields}Content-Type: application/json\r\nContent-Length: ${plant.length}\r\n\r\n${plant}`
      connection.send(`${create}${create}DELETE /plants/1 HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`)

      const statuses = [...(await connection.closed).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
      assert.deepEqual(statuses, ['200', '409', '204'])
    })

    for (const coding of ['identity', 'gzip', 'br']) {
      test(`refuses an upload that is too large at once, for ${coding}`, async () => {
        const fields = ['Transfer-Encoding', 'chunked', 'Accept-Encoding', coding]
        const upload = client.open({ ...post('ada', '', fields), body: undefined })
        const elapsed = createProcessClock()
        upload.on('error', () => undefined).write('a'.repeat(70_000))

        const [response] = (await once(upload, 'response')) as [IncomingMessage]
        const ms = elapsed()
        upload.end()

        const { statusCode, headers } = response
        assert.deepEqual([statusCode, headers.connection], [413, 'close'])
        assert.equal(headers['content-type'], 'application/json')
        const body = decodeBody(headers['content-encoding'], await buffer(response))
        assert.equal(body, '{"error":41300,"message":"The body is larger than 65536 bytes."}')
        assert.ok(ms < 1900, `the status came after ${ms} ms`)
      })
    }
  })
}
