import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { ERRORS } from '../../src/http/errors.ts'
import { memoryStore, StoreUnavailableError, type PlantStoreOptions } from '../../src/index.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { programDescription } from '../../src/standalone/paths/program-description.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { assertMatchesOpenApi, findOperation, OPERATIONS } from '../support/package/openapi-validator.ts'
import { requirePeer, skipWithoutPeers } from '../support/package/extra-packages.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { post, sendRequest, servePlants } from '../support/wire/service.ts'
import { serveStandalone } from '../support/program/test-listener.ts'
import { authenticate, CONTRACT_CASES } from './contract-cases.ts'

/** Starts the standalone server. Each token belongs to an owner of the same name, except "refused". */
function serveContractProgram(
  t: TestContext,
  options?: Partial<PlantStoreOptions>,
  limits?: Partial<Limits>,
): Promise<Server> {
  return serveStandalone(t, { authenticate, ...options } as Partial<PlantStoreOptions>, limits)
}

/** Returns all descriptions in a document, at any depth. */
function collectDescriptions(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === 'description' ? [member as string] : collectDescriptions(member),
  )
}

/** The exports of Redocly that the tests use. */
interface Redocly {
  readonly createConfig: (options: object) => Promise<object>
  readonly lintFromString: (options: object) => Promise<readonly Readonly<Record<'ruleId' | 'message', string>>[]>
}

/** The OpenAPI descriptions, each with a function that starts a server for it. */
const DESCRIPTIONS = [
  ['service', openapi, (t: TestContext) => servePlants(t)],
  ['program', programDescription, (t: TestContext) => serveContractProgram(t)],
] as const

for (const [name, description, serve] of DESCRIPTIONS) {
  suite(`the OpenAPI description of the ${name}`, () => {
    test("passes Redocly's recommended-strict rules", { skip: skipWithoutPeers }, async () => {
      const { createConfig, lintFromString } = requirePeer('@redocly/openapi-core') as Redocly
      // Only the standalone server knows its URL.
      const rules = { 'no-empty-servers': name === 'program' ? 'error' : 'off' } as const
      const config = await createConfig({ extends: ['recommended-strict'], rules })
      const problems = await lintFromString({ source: JSON.stringify(description), config })
      const broken = problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)
      assert.deepEqual(broken, [])
    })

    test('uses complete sentences', () => {
      const sentences = collectDescriptions(description).flatMap((text) => text.split(/(?<=\.) /))
      const fragments = sentences.filter((sentence) => !/^[A-Z`][^]*\S\.$/.test(sentence))
      assert.deepEqual(fragments, [])
    })

    test('contains an example of every error', () => {
      const examples = JSON.stringify(description).matchAll(/"value":({"error":\d+,"message":"(?:[^"\\]|\\.)*"})/g)
      const errors = Object.values(ERRORS).map(({ error, message }) => JSON.stringify({ error, message }))
      assert.deepEqual(new Set(Array.from(examples, ([, example]) => example)), new Set(errors))
    })

    for (const path of Object.keys(description.paths)) {
      test(`lists the same methods for ${path} as the response to OPTIONS`, async (t) => {
        const request = { method: 'OPTIONS', path: path.replace('{id}', '1'), fields: [] }
        const { status, headers } = await sendRequest(await serve(t), request)
        const described = [...OPERATIONS.get(path)!.keys()].map((method) => method.toUpperCase())
        assert.equal(status, 204)
        assert.deepEqual(described.sort(), headers['allow']?.split(', ').sort())
      })
    }
  })
}

test('every response in the OpenAPI description has a numeric status', () => {
  for (const operations of OPERATIONS.values()) {
    for (const { operationId, responses } of operations.values()) {
      for (const status of Object.keys(responses)) assert.match(status, /^[1-5][0-9]{2}$/, operationId)
    }
  }
})

suite('every response matches the OpenAPI description:', () => {
  for (const row of Object.values(CONTRACT_CASES).flat()) {
    test(row.name, async (t) => {
      const server = await serveContractProgram(t)
      for (const body of row.existingPlants) await sendRequest(server, post('owner', body))
      const request = row.request('owner')
      assertMatchesOpenApi({ ...request, ...(await sendRequest(server, request)) })
    })
  }

  for (const path of OPERATIONS.keys()) {
    if (path in openapi.paths) continue
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST']) {
      test(`responds to ${method} ${path}`, async (t) => {
        const request = { method, path, fields: [] }
        assertMatchesOpenApi({ ...request, ...(await sendRequest(await serveContractProgram(t), request)) })
      })
    }
  }

  for (const method of ['GET', 'HEAD']) {
    test(`responds to ${method} /openapi.json with 304 if the client has it cached`, async (t) => {
      const request = { method, path: '/openapi.json', fields: ['If-None-Match', '*'] }
      const response = await sendRequest(await serveContractProgram(t), request)
      assert.equal(response.status, 304)
      assertMatchesOpenApi({ ...request, ...response })
    })
  }
})

suite('the OpenAPI description covers all errors', () => {
  const HOST = 'Host: plants\r\nConnection: close\r\n'
  const GZIP = 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'
  const list = `GET /plants HTTP/1.1\r\n${HOST}Authorization: Bearer ada\r\n`
  const broken = (list: () => never | Promise<never>): Partial<PlantStoreOptions> => ({
    store: overrideStore(memoryStore(), { list }),
    storeTimeoutMs: 20,
  })
  const fail = (error: Error) => () => Promise.reject(error)
  const rows: readonly [error: number, request: string, options?: Partial<PlantStoreOptions>][] = [
    [40000, `${list}nonsense\r\n\r\n`],
    [40800, list],
    [41700, `${list}Expect: rain\r\n\r\n`],
    [43100, `${list}X: ${'x'.repeat(20_000)}\r\n\r\n`],
    [50000, `${list}\r\n`, broken(fail(new Error('a fault')))],
    [50100, `${list}${GZIP}`],
    [50100, `OPTIONS /plants HTTP/1.1\r\n${HOST}${GZIP}`],
    [50100, `OPTIONS /plants/1 HTTP/1.1\r\n${HOST}${GZIP}`],
    [50100, `GET /livez HTTP/1.1\r\n${HOST}${GZIP}`],
    [50300, `${list}\r\n`, broken(fail(new StoreUnavailableError('away')))],
    [50301, `${list}\r\n`, broken(() => new Promise(() => undefined))],
  ]
  for (const [error, request, options] of rows) {
    test(`error ${error} in response to ${request.split(' HTTP')[0]}`, async (t) => {
      // A busy machine may exceed such a short timeout, so the other rows use the default.
      const limits = error === 40800 ? { headersTimeoutMs: 100, checkIntervalMs: 20 } : undefined
      const server = await serveContractProgram(t, options, limits)
      const connection = await RawConnection.open(server)
      const [response] = await connection.send(request).readResponses()
      const [method, path] = request.split(' ') as [string, string]
      assertMatchesOpenApi({ ...response!, method, path, headers: Object.fromEntries(response!.headers) })
      assert.equal((JSON.parse(response!.body) as { error: number }).error, error)
    })
  }

  test('the OpenAPI tests cover every error code', () => {
    const codes = rows.map(([error]) => error)
    for (const { body } of Object.values(CONTRACT_CASES).flat()) codes.push(Number(/^{"error":(\d+)/.exec(body)?.[1]))
    for (const { error } of Object.values(ERRORS)) assert.ok(codes.includes(error), `no test covers error ${error}`)
  })
})

test('the interface description promises only responses that occur in a contract case', () => {
  /** The errors of any request, and those of the store: the tests above cover each of them for one operation. */
  const COMMON = [40000, 40400, 40500, 40800, 41700, 43100, 50000, 50100, 50300, 50301]
  const answers = Object.values(CONTRACT_CASES).flatMap((rows) =>
    rows.map(({ request, status, error = status }) => {
      const { method, path } = request('owner')
      return `${findOperation({ method, path, status }).join(' ')} ${error}`
    }),
  )
  const promises = Object.entries(openapi.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { responses }]) =>
      Object.entries(responses).flatMap(([status, { content }]) => {
        const examples = Object.values(content?.['application/json'].examples ?? {})
        const codes = examples.map(({ value }) => (value as { error: number }).error)
        // HEAD has the responses of GET, without their bodies.
        if (method === 'head') return []
        return (Number(status) < 400 ? [Number(status)] : codes)
          .filter((code) => !COMMON.includes(code))
          .map((code) => `${path} ${method} ${code}`)
      }),
    ),
  )
  assert.deepEqual(
    promises.filter((promise) => !answers.includes(promise)),
    [],
  )
})
