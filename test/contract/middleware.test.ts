import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import express from 'express'
import { createPlantStore, memoryStore, type PlantStore, type Store } from '../../src/index.ts'
import { get, post, type Answer } from '../support/service.ts'
import { authenticate, CONTRACT_CASES } from './cases.ts'
import { checkCases, type Place, type Reply } from './check-cases.ts'
import { connectTo, decode, type Client } from '../support/client.ts'
import { start, type Mounted } from './hosts.ts'
import { CHAINS, type Chain, type Handler } from './middleware.ts'

/** The owners of long lists, and how many plants each has. */
const LISTS = { some: 5000, many: 200_000 }

/** A store that has the long lists, in names that hardly compress, and the texts of them. */
const lists = memoryStore()
const texts = new Map<string, string>()
for (const [owner, count] of Object.entries(LISTS)) {
  const names = Array.from({ length: count }, (_, i) => `é${createHash('sha256').update(`${i}`).digest('base64')}`)
  for (const [i, name] of names.entries()) void lists.create(owner, { id: BigInt(i), name })
  texts.set(owner, JSON.stringify(names.map((name) => ({ name }))))
}

function createStore(): Store {
  const memory = memoryStore()
  return { ...memory, list: (owner, page) => (owner in LISTS ? lists : memory).list(owner, page) }
}

/** Puts a chain before a service, in each kind of host. */
const HOSTS: Readonly<Record<string, (chain: Chain, plantStore: PlantStore) => RequestListener>> = {
  'Express 5': ({ handlers }, plantStore) => {
    const app = express().disable('x-powered-by')
    for (const handler of handlers) app.use(handler)
    return app.use((request, response) => plantStore(request, response)) as RequestListener
  },
  'node:http': ({ handlers }, plantStore) =>
    handlers.reduceRight<RequestListener>((next, handler: Handler) => {
      return (request, response) => handler(request, response, () => next(request, response))
    }, plantStore),
}

const LENGTH = /^content-length$/

function without(headers: Answer['headers'], names: readonly RegExp[]): Answer['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.some((pattern) => pattern.test(name))))
}

/** What the service itself answered: without its length, which is right or left out, and without what a chain adds. */
function withoutAdded({ adds }: Chain, answer: Reply): Reply {
  const { headers, body } = answer
  if (body !== '') {
    assert.ok([undefined, String(Buffer.byteLength(body))].includes(headers['content-length']))
    for (const added of adds)
      assert.ok(
        Object.keys(headers).some((name) => added.test(name)),
        String(added),
      )
  }
  return { ...answer, headers: without(headers, [LENGTH, ...adds]) }
}

const warnings: Error[] = []
process.on('warning', (warning) => warnings.push(warning))
after(() => assert.deepEqual(warnings, []))

for (const [host, mount] of Object.entries(HOSTS)) {
  for (const chain of CHAINS) {
    suite(`${host}, behind ${chain.name}`, { timeout: 60_000 }, () => {
      let server: Mounted
      let client: Client
      before(async () => {
        const plantStore = createPlantStore({ authenticate, store: createStore() })
        server = await start(createServer(mount(chain, plantStore)))
        client = connectTo('http', server.port)
      })
      after(async () => {
        client.close()
        await server.close()
      })

      const place: Place = {
        prefix: '',
        isHttp1: true,
        fields: ['Accept-Encoding', 'gzip'],
        expected: ({ status, headers, body }) => ({ status, headers: without(headers, [LENGTH]), body }),
        received: (answer) => withoutAdded(chain, answer),
      }
      test('answers as the contract says', async () => {
        for (const [group, rows] of Object.entries(CONTRACT_CASES)) await checkCases(client, group, rows, place)
      })

      for (const [owner, count] of Object.entries(LISTS)) {
        for (const coding of ['identity', 'gzip', 'br']) {
          test(`sends a list of ${count} plants whole, for ${coding}`, async () => {
            const request = get(owner)
            const answer = await client.send({ ...request, fields: [...request.fields, 'Accept-Encoding', coding] })

            const { status, headers, body } = withoutAdded(chain, answer)
            assert.deepEqual({ status, headers }, { status: 200, headers: { 'content-type': 'application/json' } })
            assert.ok(body === texts.get(owner), `${body.length} characters in place of ${texts.get(owner)!.length}`)
          })
        }
      }

      for (const coding of ['identity', 'gzip', 'br']) {
        test(`refuses an upload that is too large at once, for ${coding}`, async () => {
          const fields = ['Transfer-Encoding', 'chunked', 'Accept-Encoding', coding]
          const upload = client.open({ ...post('ada', '', fields), body: undefined })
          const startedAt = performance.now()
          upload.on('error', () => undefined).write('a'.repeat(70_000))

          const [response] = (await once(upload, 'response')) as [IncomingMessage]
          const ms = performance.now() - startedAt
          upload.end()

          const { statusCode, headers } = response
          assert.deepEqual([statusCode, headers.connection], [413, 'close'])
          assert.equal(headers['content-type'], 'application/json')
          const body = decode(headers['content-encoding'], await buffer(response))
          assert.equal(body, '{"error":41300,"message":"The body is larger than 65536 bytes."}')
          assert.ok(ms < 1900, `the status came after ${ms} ms`)
        })
      }
    })
  }
}
