import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { OPERATIONS, RESOURCE_PATHS } from '../../src/operations.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { captureLog } from '../support/program/capture-log.ts'
import { sendRawRequest, READER_TOKEN, serveProgram, WRITER_TOKEN } from '../support/program/in-process-program.ts'
import type { RawResponse } from '../support/wire/parse-responses.ts'

const AUTHORIZED = `Host: plants\r\nAuthorization: Bearer ${WRITER_TOKEN}\r\n`

/** Requests whose errors come from different parts of the code: the error, the request line, and the rest after Origin. */
const ERROR_REQUESTS: readonly (readonly [error: number, line: string, rest: string])[] = [
  [40000, 'GET /plants', 'Host: a\r\nno field\r\n\r\n'],
  [40000, 'GET /plants', 'Host: a b\r\n\r\n'],
  [40003, 'DELETE /plants/x', `${AUTHORIZED}\r\n`],
  [40100, 'GET /plants', 'Host: a\r\n\r\n'],
  [40300, 'DELETE /plants/1', `Host: a\r\nAuthorization: Bearer ${READER_TOKEN}\r\n\r\n`],
  [40400, 'GET /x', 'Host: a\r\n\r\n'],
  [40500, 'PUT /livez', 'Host: a\r\n\r\n'],
  [40800, 'GET /plants', 'Host: a\r\n'],
  [41500, 'POST /plants', `${AUTHORIZED}Content-Length: 70000\r\n\r\n${' '.repeat(70_000)}`],
  [41700, 'GET /plants', 'Host: a\r\nExpect: x\r\n\r\n'],
  [43100, 'GET /plants', `Host: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  [50000, 'DELETE /plants/1', `${AUTHORIZED}\r\n`],
  [50100, 'GET /livez', 'Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
]

const brokenStore = overrideStore(memoryStore(), {
  delete: () => {
    throw new Error('a fault')
  },
})

const EXPOSED_FIELDS = 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow'

/** Returns the CORS headers of a response, and Vary. */
function getCorsHeaders({ headers }: RawResponse): Record<string, string> {
  const fields = [...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
  return Object.fromEntries(fields)
}

function createAllowedHeaders(origin: string): Record<string, string> {
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_FIELDS }
}

const LISTED_ORIGIN = 'http://localhost:8080'
const ORIGIN_LIST = `https://a.example, ${LISTED_ORIGIN}`
const VARY_HEADERS = { vary: 'Origin' }
const LISTED_HEADERS = { ...VARY_HEADERS, ...createAllowedHeaders(LISTED_ORIGIN) }

/** Sends a request to a program with the given allowed origins, or without CORS. */
async function requestWithOrigins(
  t: TestContext,
  origins: string | undefined,
  line: string,
  rest: string,
): Promise<RawResponse> {
  captureLog(t)
  const cors = origins === undefined ? {} : { PLANT_STORE_CORS_ORIGINS: origins }
  const port = await serveProgram(t, { PLANT_STORE_HEADERS_TIMEOUT_MS: '200', ...cors }, brokenStore)
  return sendRawRequest(port, `${line} HTTP/1.1\r\n${rest}`)
}

suite('the CORS headers are correct', () => {
  for (const [error, line, rest] of ERROR_REQUESTS) {
    // If `node:http` rejects a request, its origin is unknown.
    const isUnread = error === 40800 || error === 43100 || rest.includes('no field')
    test(`in the error response ${error} to ${line}${isUnread ? ', which node:http rejects' : ''}`, async (t) => {
      const answer = await requestWithOrigins(t, ORIGIN_LIST, line, `Origin: ${LISTED_ORIGIN}\r\n${rest}`)
      assert.equal((JSON.parse(answer.body) as { error: number }).error, error)
      assert.deepEqual(getCorsHeaders(answer), isUnread ? VARY_HEADERS : LISTED_HEADERS)
    })
  }

  /** The last column contains the headers of the response to a request that node:http rejects. */
  for (const [what, origins, origin, fields, unread] of [
    ['with CORS disabled', undefined, LISTED_ORIGIN, {}, {}],
    [
      'with * and a request with an Origin field',
      '*',
      'https://any.example',
      createAllowedHeaders('*'),
      createAllowedHeaders('*'),
    ],
    ['with * and a request without an Origin field', '*', '', createAllowedHeaders('*'), createAllowedHeaders('*')],
    ['with a list that contains the origin of the request', ORIGIN_LIST, LISTED_ORIGIN, LISTED_HEADERS, VARY_HEADERS],
    [
      'with a list that lacks the origin of the request',
      ORIGIN_LIST,
      'https://a.example.evil',
      VARY_HEADERS,
      VARY_HEADERS,
    ],
    ['with a list and a request without an Origin field', ORIGIN_LIST, '', VARY_HEADERS, VARY_HEADERS],
    ['with a single origin and a request without an Origin field', LISTED_ORIGIN, '', VARY_HEADERS, LISTED_HEADERS],
  ] as const) {
    test(what, async (t) => {
      const from = origin === '' ? '' : `Origin: ${origin}\r\n`
      for (const path of ['/plants', '/livez', '/readyz', '/openapi.json']) {
        const answer = await requestWithOrigins(
          t,
          origins,
          `GET ${path}`,
          `${from}${AUTHORIZED}Connection: close\r\n\r\n`,
        )
        assert.deepEqual([answer.status, getCorsHeaders(answer)], [200, fields])
      }
      assert.deepEqual(
        getCorsHeaders(await requestWithOrigins(t, origins, 'GET /plants', `${from}no field\r\n\r\n`)),
        unread,
      )
    })
  }
})

suite('a preflight', () => {
  const [PLANTS, PLANT] = RESOURCE_PATHS.map((path) => [...Object.keys(OPERATIONS[path]), 'OPTIONS'].join(', '))

  const ORIGIN = 'Origin: https://a.example\r\n'
  const METHOD = 'Access-Control-Request-Method: POST\r\n'
  const PERMITTED = {
    'access-control-allow-headers': '*, Authorization',
    'access-control-max-age': '7200',
  }

  function preflight(t: TestContext, origins: string, line: string, fields = ORIGIN + METHOD): Promise<RawResponse> {
    return requestWithOrigins(t, origins, line, `Host: plants\r\n${fields}Connection: close\r\n\r\n`)
  }

  for (const [path, methods, status] of [
    ['/plants', PLANTS, 204],
    ['/plants/1', PLANT, 204],
    ['http://plants/%70lants', PLANTS, 204],
    ['/readyz', 'GET, HEAD, OPTIONS', 204],
    // The preflight succeeds, so that the page can read the error response to its actual request.
    ['/x', undefined, 404],
    ['/plants/', undefined, 404],
    ['/plants/%zz', PLANT, 401],
  ] as const) {
    test(`for ${path} succeeds without a token`, async (t) => {
      for (const [origins, fields] of [
        ['https://a.example', { ...VARY_HEADERS, ...createAllowedHeaders('https://a.example') }],
        ['*', createAllowedHeaders('*')],
      ] as const) {
        const answer = await preflight(t, origins, `OPTIONS ${path}`)
        const allow = status === 204 ? methods : undefined
        assert.deepEqual([answer.status, answer.body, answer.headers.get('allow')], [204, '', allow])
        const permitted = methods === undefined ? {} : { 'access-control-allow-methods': methods }
        assert.deepEqual(getCorsHeaders(answer), { ...fields, ...PERMITTED, ...permitted })
      }
    })

    test(`for ${path} from an unlisted origin results in the usual response to OPTIONS`, async (t) => {
      const answer = await preflight(t, `${LISTED_ORIGIN},https://b.example`, `OPTIONS ${path}`)
      assert.deepEqual([answer.status, getCorsHeaders(answer)], [status, VARY_HEADERS])
    })
  }

  test('the preflight response for OPTIONS * lists the methods of the whole server', async (t) => {
    const answer = await preflight(t, '*', 'OPTIONS *')
    assert.equal(answer.headers.get('access-control-allow-methods'), 'GET, HEAD, POST, DELETE, OPTIONS')
  })

  for (const path of ['/plants', '/readyz', '/x', '/plants/%zz']) {
    for (const [name, fields] of [
      ['Host', 'Host: plants\r\n'],
      ['Content-Type', 'Content-Type: a/b\r\nContent-Type: a/b\r\n'],
    ] as const) {
      test(`for ${path} with two ${name} fields is rejected with 400`, async (t) => {
        const answer = await preflight(t, '*', `OPTIONS ${path}`, fields + ORIGIN + METHOD)
        assert.deepEqual([answer.status, (JSON.parse(answer.body) as { error: number }).error], [400, 40000])
        assert.equal(answer.headers.get('access-control-allow-origin'), '*')
      })
    }
  }

  for (const [what, line, fields] of [
    ['GET with Access-Control-Request-Method', 'GET /plants', ORIGIN + METHOD],
    ['OPTIONS without Access-Control-Request-Method', 'OPTIONS /plants', ORIGIN],
    ['OPTIONS without Origin', 'OPTIONS /plants', METHOD],
  ] as const) {
    test(`is not detected in ${what}`, async (t) => {
      assert.deepEqual(getCorsHeaders(await preflight(t, '*', line, fields)), createAllowedHeaders('*'))
    })
  }
})
