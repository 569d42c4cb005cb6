import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore, StoreUnavailableError, type Store } from '../../src/index.ts'
import { ERRORS, type ErrorName } from '../../src/http/errors.ts'
import { createCommonFields } from '../../src/standalone/common-fields.ts'
import { createCors } from '../../src/standalone/cors.ts'
import { createHttpServer } from '../../src/standalone/http-server.ts'
import { createProgramPaths } from '../../src/standalone/program-paths.ts'
import { createReports } from '../../src/standalone/reports.ts'
import { idOf } from '../../src/standalone/request-ids.ts'
import { createRoutes } from '../../src/standalone/routes.ts'
import { readSettings, type Settings } from '../../src/standalone/settings.ts'
import { captureLog } from '../support/captured-log.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { close, listen } from '../support/service.ts'
import { readAnswers, type WireAnswer } from '../support/wire.ts'

const store: Store = {
  ...memoryStore(),
  delete(_owner, id) {
    if (id === 500n) throw new Error('a fault')
    if (id === 503n) throw new StoreUnavailableError('away')
    if (id === 504n) throw new StoreUnavailableError('lost', { isOutcomeUnknown: true })
    return false
  },
}

/** Starts a service like that of the program. */
async function startService(t: TestContext, environment: Record<string, string>): Promise<number> {
  const settings: Settings = { ...readSettings(environment), headersTimeoutMs: 200, checkIntervalMs: 20 }
  const { corsOrigins } = settings
  const tokens = { writer: 'ada', reader: { owner: 'ada', access: 'read' } } as const
  const plants = createPlantStore({ tokens, store, ...createReports(true) })
  const pages = createProgramPaths({ store, storeTimeoutMs: 1000, isDraining: () => false }, plants)
  const { server } = createHttpServer(
    (request, response) => plants(request, response, () => pages(request, response)),
    settings,
    createCommonFields(corsOrigins && createCors(corsOrigins, createRoutes([]))),
  )
  await listen(server)
  t.after(() => close(server))
  return (server.address() as AddressInfo).port
}

async function ask(port: number, request: string): Promise<WireAnswer> {
  const connection = await RawConnection.open(port, true)
  connection.send(request)
  await connection.receive(/\r\n\r\n/)
  connection.socket.end()
  const { answers } = readAnswers(Buffer.from(await connection.closed, 'latin1'))
  return answers.at(-1)!
}

const HOST = 'Host: plants\r\n'
const WRITER = 'Authorization: Bearer writer\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'
const PLANT = 'Content-Length: 21\r\n\r\n{"id":1,"name":"Fern"}'.replace('21', '22')

/** A request that gets the error; the further fields come right after the first line. */
type Bring = (fields: string) => string

const ERRORS_BY_REQUEST: Readonly<Record<ErrorName, Bring>> = {
  malformedRequest: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}no field\r\n\r\n`,
  notJson: (fields) => `POST /plants HTTP/1.1\r\n${fields}${HOST}${WRITER}${JSON_TYPE}Content-Length: 1\r\n\r\n{`,
  notPlant: (fields) => `POST /plants HTTP/1.1\r\n${fields}${HOST}${WRITER}${JSON_TYPE}Content-Length: 2\r\n\r\n{}`,
  badId: (fields) => `DELETE /plants/x HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
  badQuery: (fields) => `GET /plants?limit=x HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
  noToken: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}\r\n`,
  tokenRefused: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}Authorization: Bearer x\r\n\r\n`,
  readOnlyToken: (fields) => `DELETE /plants/1 HTTP/1.1\r\n${fields}${HOST}Authorization: Bearer reader\r\n\r\n`,
  noResource: (fields) => `GET /x HTTP/1.1\r\n${fields}${HOST}\r\n`,
  noPlant: (fields) => `DELETE /plants/1 HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
  methodNotAllowed: (fields) => `PUT /plants/1 HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
  requestTimeout: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}`,
  idTaken: (fields) =>
    [HOST, fields + HOST].map((head) => `POST /plants HTTP/1.1\r\n${head}${WRITER}${JSON_TYPE}${PLANT}`).join(''),
  bodyTooLarge: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${WRITER}${JSON_TYPE}Content-Length: 70000\r\n\r\n${' '.repeat(70_000)}`,
  wrongContentType: (fields) => `POST /plants HTTP/1.1\r\n${fields}${HOST}${WRITER}${PLANT}`,
  wrongContentEncoding: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${WRITER}${JSON_TYPE}Content-Encoding: gzip\r\n${PLANT}`,
  expectationFailed: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}Expect: x\r\n\r\n`,
  tooManyFields: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}X: ${'x'.repeat(20_000)}\r\n\r\n`,
  unexpected: (fields) => `DELETE /plants/500 HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
  unknownTransferCoding: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${WRITER}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  storeUnavailable: (fields) => `DELETE /plants/503 HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
  outcomeUnknown: (fields) => `DELETE /plants/504 HTTP/1.1\r\n${fields}${HOST}${WRITER}\r\n`,
}

const EXPOSED = 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow'
const LIST = { PLANT_STORE_CORS_ORIGINS: 'https://a.example, http://localhost:8080' }

/** The fields for browsers of a response. */
function corsOf({ headers }: WireAnswer): Record<string, string> {
  const fields = [...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
  return Object.fromEntries(fields)
}

function allowed(origin: string): Record<string, string> {
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED }
}

const LISTED = { vary: 'Origin', ...allowed('http://localhost:8080') }

const POLICIES: readonly [what: string, env: Record<string, string>, origin: string | undefined, fields: object][] = [
  ['without CORS', {}, 'http://localhost:8080', {}],
  ['with *, to an origin', { PLANT_STORE_CORS_ORIGINS: '*' }, 'https://any.example', allowed('*')],
  ['with *, without Origin', { PLANT_STORE_CORS_ORIGINS: '*' }, undefined, allowed('*')],
  ['with a list, to an origin of it', LIST, 'http://localhost:8080', LISTED],
  ['with a list, to another origin', LIST, 'https://a.example.evil', { vary: 'Origin' }],
  ['with a list, without Origin', LIST, undefined, { vary: 'Origin' }],
]

for (const [what, environment, origin, fields] of POLICIES) {
  suite(`${what}, the fields for browsers are right in the answer`, () => {
    for (const [name, bring] of Object.entries(ERRORS_BY_REQUEST)) {
      const { error } = ERRORS[name as ErrorName]
      test(`${error} ${name}`, async (t) => {
        captureLog(t)
        const port = await startService(t, environment)
        const sent = `${origin === undefined ? '' : `Origin: ${origin}\r\n`}X-Request-Id: my-id\r\n`
        const answer = await ask(port, bring(sent))
        assert.equal((JSON.parse(answer.body) as { error: number }).error, error)
        assert.deepEqual(corsOf(answer), fields)
        assert.equal(answer.headers.get('x-request-id'), 'my-id')
      })
    }

    for (const path of ['/plants', '/livez', '/readyz', '/openapi.json']) {
      test(`to GET ${path}`, async (t) => {
        captureLog(t)
        const port = await startService(t, environment)
        const sent = origin === undefined ? '' : `Origin: ${origin}\r\n`
        const answer = await ask(port, `GET ${path} HTTP/1.1\r\n${sent}${HOST}${WRITER}Connection: close\r\n\r\n`)
        assert.equal(answer.status, 200)
        assert.deepEqual(corsOf(answer), fields)
      })
    }
  })
}

suite('a preflight', () => {
  function preflight(path: string, origin: string, method = 'OPTIONS'): string {
    const fields = `Origin: ${origin}\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n`
    return `${method} ${path} HTTP/1.1\r\n${HOST}${fields}\r\n`
  }

  const rows = [
    ['/plants', 'GET, HEAD, POST, OPTIONS'],
    ['/plants/1', 'DELETE, OPTIONS'],
    ['http://plants/%70lants', 'GET, HEAD, POST, OPTIONS'],
    ['/readyz', 'GET, HEAD, OPTIONS'],
  ] as const
  for (const [path, methods] of rows) {
    for (const [origins, fields] of [
      ['https://a.example', { vary: 'Origin', ...allowed('https://a.example') }],
      ['*', allowed('*')],
    ] as const) {
      test(`for ${path} is answered without a token, with ${origins}`, async (t) => {
        captureLog(t)
        const port = await startService(t, { PLANT_STORE_CORS_ORIGINS: origins })
        const answer = await ask(port, preflight(path, 'https://a.example'))
        assert.equal(answer.status, 204)
        assert.equal(answer.body, '')
        assert.deepEqual(corsOf(answer), {
          ...fields,
          'access-control-allow-methods': methods,
          'access-control-allow-headers': 'Authorization, Content-Type, X-Request-Id',
          'access-control-max-age': '7200',
        })
      })
    }
  }

  test('of another origin gets no permission', async (t) => {
    captureLog(t)
    const port = await startService(t, LIST)
    const answer = await ask(port, preflight('/plants', 'https://evil.example'))
    assert.deepEqual([answer.status, corsOf(answer)], [204, { vary: 'Origin' }])
  })

  for (const [what, request] of [
    ['for no resource', preflight('/x', 'https://a.example')],
    ['that is none, as it is no OPTIONS,', preflight('/plants', 'https://a.example', 'GET')],
    [
      'that is none, as it names no method,',
      `OPTIONS /plants HTTP/1.1\r\n${HOST}Origin: https://a.example\r\nConnection: close\r\n\r\n`,
    ],
    [
      'that is none, as it has no Origin,',
      `OPTIONS /plants HTTP/1.1\r\n${HOST}Access-Control-Request-Method: GET\r\nConnection: close\r\n\r\n`,
    ],
  ] as const) {
    test(`${what} gets no methods`, async (t) => {
      captureLog(t)
      const port = await startService(t, { PLANT_STORE_CORS_ORIGINS: '*' })
      assert.deepEqual(corsOf(await ask(port, request)), allowed('*'))
    })
  }
})

suite('the id of a request', () => {
  const NEW_ID = /^[\w-]{24}$/

  for (const id of ['x', '!'.repeat(128), '01JDZ/abc~{"}']) {
    test(`is the client's own ${JSON.stringify(id.slice(0, 20))}, in the response and in the log`, async (t) => {
      const events = captureLog(t)
      const port = await startService(t, {})
      const answer = await ask(port, `GET /plants HTTP/1.1\r\n${HOST}X-Request-Id: ${id}\r\nConnection: close\r\n\r\n`)
      assert.equal(answer.headers.get('x-request-id'), id)
      assert.deepEqual(
        events.map(({ event, request }) => [event, request]),
        [['response', id]],
      )
    })
  }

  for (const [what, fields] of [
    ['none', ''],
    ['an empty one', 'X-Request-Id:\r\n'],
    ['one of 129 characters', `X-Request-Id: ${'x'.repeat(129)}\r\n`],
    ['one with a space', 'X-Request-Id: a b\r\n'],
    ['one that is not ASCII', 'X-Request-Id: \u00e9\r\n'],
    ['two', 'X-Request-Id: a\r\nX-Request-Id: b\r\n'],
  ] as const) {
    test(`is a new one if the client sent ${what}`, async (t) => {
      const events = captureLog(t)
      const port = await startService(t, {})
      const answer = await ask(port, `GET /plants HTTP/1.1\r\n${HOST}${fields}Connection: close\r\n\r\n`)
      const id = answer.headers.get('x-request-id')!
      assert.match(id, NEW_ID)
      assert.equal(events[0]!['request'], id)
    })

    test(`is a new one in a refusal on a bare connection if the client sent ${what}`, async (t) => {
      const port = await startService(t, {})
      const answer = await ask(port, `GET /plants HTTP/1.1\r\n${HOST}${fields}no field\r\n\r\n`)
      assert.match(answer.headers.get('x-request-id')!, NEW_ID)
    })
  }

  test('is another one for each request', () => {
    const ids = Array.from({ length: 1000 }, () => idOf({ headers: {} }))
    assert.equal(new Set(ids).size, 1000)
    for (const id of ids) assert.match(id, NEW_ID)
  })

  test('is that of its own request if the body of another came before', async (t) => {
    captureLog(t)
    const port = await startService(t, {})
    const first = `POST /plants HTTP/1.1\r\n${HOST}X-Request-Id: first\r\n${WRITER}${JSON_TYPE}${PLANT}`
    const connection = await RawConnection.open(port)
    connection.send(first)
    await connection.receive(/}$/)
    connection.send(`GET /plants HTTP/1.1\r\nX-Request-Id: second\r\nno field\r\n\r\n`)
    assert.match(await connection.closed, /X-Request-Id: first\r\n[^]*X-Request-Id: second\r\n/i)
  })
})

suite('PLANT_STORE_CORS_ORIGINS', () => {
  for (const [value, origins] of [
    ['*', '*'],
    ['https://app.example', new Set(['https://app.example'])],
    [
      'http://localhost:8080 , https://xn--bcher-kva.example',
      new Set(['http://localhost:8080', 'https://xn--bcher-kva.example']),
    ],
    ['http://[::1]:8080,capacitor://localhost', new Set(['http://[::1]:8080', 'capacitor://localhost'])],
  ] as const) {
    test(`takes ${value}`, () =>
      assert.deepEqual(readSettings({ PLANT_STORE_CORS_ORIGINS: value }).corsOrigins, origins))
  }

  for (const value of [
    '',
    'null',
    'app.example',
    'https://app.example/',
    'https://app.example/x',
    'https://App.example',
    'HTTPS://app.example',
    'https://app.example:443',
    'https://bücher.example',
    'https://*.app.example',
    'https://ada@app.example',
    'https://app.example,*',
    'https://app.example,',
    'https://app.example https://b.example',
    'https://app.example:99999',
  ]) {
    test(`refuses ${JSON.stringify(value)}`, () => {
      assert.throws(() => readSettings({ PLANT_STORE_CORS_ORIGINS: value }), {
        name: 'SettingError',
        message:
          'PLANT_STORE_CORS_ORIGINS takes origins such as https://app.example, separated by commas, or *: ' +
          'whose pages may use the service',
      })
    })
  }
})
