import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import { createPlantStore, type PlantStore, type ResponseEvent } from '../../src/index.ts'
import { createProcessClock } from '../support/event-loop.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { waitUntil } from '../support/wait-until.ts'
import { close, listen, getPort, post, type TestResponse } from '../support/service.ts'
import { testCases, type ComparedResponse } from './check-cases.ts'
import { authenticate } from './contract-cases.ts'
import { connectClient, decodeBody, type Client } from '../support/client.ts'
import { createLongListStore, getFirstPageBytes, getWithEncoding, LIST_SIZES, LIST_BODIES } from './long-lists.ts'
import { CHAINS, getSkipReason, loadChain, type MiddlewareChain } from './middleware.ts'

/** Mounts a service behind a middleware chain, without a framework, which would add nothing that these tests check. */
async function mountBehind(chain: MiddlewareChain, plantStore: PlantStore): Promise<RequestListener> {
  return (await loadChain(chain)).reduceRight<RequestListener>(
    (next, handler) => (request, response) => handler(request, response, () => next(request, response)),
    plantStore,
  )
}

/** The response headers that any chain may change. */
const CODING_FIELDS = /^content-(?:length|encoding)$/

function omitHeaders(headers: TestResponse['headers'], names: readonly RegExp[]): TestResponse['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.some((pattern) => pattern.test(name))))
}

/**
 * Returns the part of a response that comes from the service. Asserts that the chain has added its header fields, and
 * that Content-Length is correct or missing.
 */
function omitAddedFields({ addedFields }: MiddlewareChain, response: ComparedResponse): ComparedResponse {
  const { headers, body } = response
  if (body !== '') {
    assert.ok([undefined, String(Buffer.byteLength(body))].includes(headers['content-length']))
    for (const added of addedFields) assert.match(Object.keys(headers).join('\n'), new RegExp(added, 'm'))
  }
  return { ...response, headers: omitHeaders(headers, [CODING_FIELDS, ...addedFields]) }
}

// MaxListenersExceededWarning must not occur. The PlantStoreWarning about the truncated list is expected.
const warnings: Error[] = []
process.on('warning', (warning) => warning.name === 'PlantStoreWarning' || warnings.push(warning))
after(() => assert.deepEqual(warnings, []))

for (const chain of CHAINS) {
  suite(`the service behind ${chain.name}`, { skip: getSkipReason(chain), timeout: 300_000 }, () => {
    const store = createLongListStore()
    let server: Server
    let client: Client
    let response: ServerResponse
    let onResponse: ((event: ResponseEvent) => void) | undefined
    before(async () => {
      const plantStore = createPlantStore({ authenticate, store, onResponse: (event) => onResponse?.(event) })
      server = createServer(await mountBehind(chain, plantStore))
      server.prependListener('request', (_, created) => (response = created))
      await listen(server)
      client = connectClient('http', getPort(server))
    })
    after(() => {
      client.close()
      return close(server)
    })

    test('responds as expected to every contract case', async (t) => {
      await testCases(t, {
        name: `behind ${chain.name}`,
        client,
        isHttp1: true,
        fields: ['Accept-Encoding', 'gzip'],
        expected: ({ status, headers, body }) => ({ status, headers: omitHeaders(headers, [CODING_FIELDS]), body }),
        normalize: (response) => omitAddedFields(chain, response),
      })
    })

    for (const owner of ['some', 'more'] as const) {
      for (const coding of ['identity', 'gzip', 'br']) {
        test(`sends all ${LIST_SIZES[owner]} plants of a list (${coding}, ${chain.name})`, async () => {
          const response = await client.send(getWithEncoding(owner, coding))

          const { status, headers, body } = omitAddedFields(chain, response)
          const own = { 'content-type': 'application/json', 'cache-control': 'no-store' }
          assert.deepEqual({ status, headers }, { status: 200, headers: own })
          assert.ok(body === LIST_BODIES.get(owner), `${body.length} characters`)
        })
      }
    }

    test(`reports a failed list as incomplete (${chain.name})`, async () => {
      const reported = new Promise<ResponseEvent>((resolve) => (onResponse = resolve))
      await assert.rejects(client.send(getWithEncoding('failing', 'gzip')), { code: 'ECONNRESET' })
      const { status, bytes, complete } = await reported
      assert.deepEqual({ status, bytes, complete }, { status: 200, bytes: getFirstPageBytes('some'), complete: false })
    })

    test(`stops sending a list when the client disconnects without reading (${chain.name})`, async () => {
      const reported = new Promise<ResponseEvent>((resolve) => (onResponse = resolve))
      const request = client.open(getWithEncoding('endless', 'gzip'))
      request.on('error', () => undefined).end()
      await once(request, 'response')
      await waitUntil(() => response.writableNeedDrain)

      request.destroy()

      const { status, complete } = await reported
      assert.deepEqual({ status, complete }, { status: 200, complete: false })
    })

    test(`runs pipelined requests in order (${chain.name})`, async () => {
      const connection = await RawConnection.open(server)
      const fields = 'Host: a\r\nAuthorization: Bearer pipelining\r\nAccept-Encoding: gzip\r\n'
      const plant = '{"id":1,"name":"Fern"}'
      const create = `POST /plants HTTP/1.1\r\n${fields}Content-Type: application/json\r\nContent-Length: ${plant.length}\r\n\r\n${plant}`
      connection.send(`${create}${create}DELETE /plants/1 HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`)

      const statuses = [...(await connection.closed).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
      assert.deepEqual(statuses, ['200', '409', '204'])
    })

    for (const coding of ['identity', 'gzip', 'br']) {
      test(`rejects an oversized upload with 413 before the upload has ended (${coding}, ${chain.name})`, async () => {
        const fields = ['Transfer-Encoding', 'chunked', 'Accept-Encoding', coding]
        const upload = client.open({ ...post('ada', '', fields), body: undefined })
        const elapsed = createProcessClock()
        upload.on('error', () => undefined).write('a'.repeat(70_000))

        const [response] = (await once(upload, 'response')) as [IncomingMessage]
        const ms = elapsed()

        const { statusCode, headers } = response
        assert.deepEqual([statusCode, headers['content-type']], [413, 'application/json'])
        const body = decodeBody(headers['content-encoding'], await buffer(response))
        assert.equal(body, '{"error":41300,"message":"The body is larger than 65536 bytes."}')
        assert.ok(ms < 1900, `the response took ${ms} ms`)
        upload.destroy()
      })
    }
  })
}
