import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError, type Store } from '../../src/index.ts'
import { ERRORS, type ErrorName } from '../../src/http/errors.ts'
import { OPERATIONS, RESOURCE_PATHS } from '../../src/operations.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { captureLog } from '../support/program/captured-log.ts'
import { ask, READER, serveProgram, WRITER } from '../support/program/in-process-program.ts'
import type { WireAnswer } from '../support/wire/wire.ts'

const store: Store = {
  ...memoryStore(),
  delete(_owner, id) {
    if (id === 500n) throw new Error('a fault')
    if (id === 503n) throw new StoreUnavailableError('away')
    if (id === 504n) throw new StoreUnavailableError('lost', { isOutcomeUnknown: true })
    return false
  },
}

const HOST = 'Host: plants\r\n'
const AUTHORIZATION = `Authorization: Bearer ${WRITER}\r\n`
const JSON_TYPE = 'Content-Type: application/json\r\n'
const PLANT = 'Content-Length: 21\r\n\r\n{"id":1,"name":"Fern"}'.replace('21', '22')

/** A request that gets the error; the further fields come right after the first line. */
type Bring = (fields: string) => string

const ERRORS_BY_REQUEST: Readonly<Record<ErrorName, Bring>> = {
  malformedRequest: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}no field\r\n\r\n`,
  notJson: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}${JSON_TYPE}Content-Length: 1\r\n\r\n{`,
  notPlant: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}${JSON_TYPE}Content-Length: 2\r\n\r\n{}`,
  badId: (fields) => `DELETE /plants/x HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
  badQuery: (fields) => `GET /plants?limit=x HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
  noToken: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}\r\n`,
  tokenRefused: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}Authorization: Bearer x\r\n\r\n`,
  readOnlyToken: (fields) => `DELETE /plants/1 HTTP/1.1\r\n${fields}${HOST}Authorization: Bearer ${READER}\r\n\r\n`,
  noResource: (fields) => `GET /x HTTP/1.1\r\n${fields}${HOST}\r\n`,
  noPlant: (fields) => `DELETE /plants/1 HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
  methodNotAllowed: (fields) => `PUT /plants/1 HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
  requestTimeout: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}`,
  idTaken: (fields) =>
    [HOST, fields + HOST]
      .map((head) => `POST /plants HTTP/1.1\r\n${head}${AUTHORIZATION}${JSON_TYPE}${PLANT}`)
      .join(''),
  bodyTooLarge: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}${JSON_TYPE}Content-Length: 70000\r\n\r\n${' '.repeat(70_000)}`,
  wrongContentType: (fields) => `POST /plants HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}${PLANT}`,
  wrongContentEncoding: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}${JSON_TYPE}Content-Encoding: gzip\r\n${PLANT}`,
  expectationFailed: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}Expect: x\r\n\r\n`,
  tooManyFields: (fields) => `GET /plants HTTP/1.1\r\n${fields}${HOST}X: ${'x'.repeat(20_000)}\r\n\r\n`,
  unexpected: (fields) => `DELETE /plants/500 HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
  unknownTransferCoding: (fields) =>
    `POST /plants HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  storeUnavailable: (fields) => `DELETE /plants/503 HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
  outcomeUnknown: (fields) => `DELETE /plants/504 HTTP/1.1\r\n${fields}${HOST}${AUTHORIZATION}\r\n`,
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

const VARY = { vary: 'Origin' }
const ONE = { PLANT_STORE_CORS_ORIGINS: 'http://localhost:8080' }

/** Requests that `node:http` refuses: their origin is not known. */
const UNREAD: readonly string[] = ['malformedRequest', 'requestTimeout', 'tooManyFields'] satisfies ErrorName[]

interface Policy {
  readonly environment: Record<string, string>
  readonly origin?: string
  readonly fields: object
  /** Those of the response to a request that could not be read. */
  readonly unread: object
}

const ANY = { environment: { PLANT_STORE_CORS_ORIGINS: '*' }, fields: allowed('*'), unread: allowed('*') }

const POLICIES: Readonly<Record<string, Policy>> = {
  'without CORS': { environment: {}, origin: 'http://localhost:8080', fields: {}, unread: {} },
  'with *, to an origin': { ...ANY, origin: 'https://any.example' },
  'with *, without Origin': ANY,
  'with a list, to an origin of it': {
    environment: LIST,
    origin: 'http://localhost:8080',
    fields: LISTED,
    unread: VARY,
  },
  'with a list, to another origin': { environment: LIST, origin: 'https://a.example.evil', fields: VARY, unread: VARY },
  'with a list, without Origin': { environment: LIST, fields: VARY, unread: VARY },
  'with a list of one, without Origin': { environment: ONE, fields: VARY, unread: LISTED },
}

for (const [what, { environment, origin, fields, unread }] of Object.entries(POLICIES)) {
  suite(`${what}, the fields for browsers are right in the answer`, () => {
    for (const [name, bring] of Object.entries(ERRORS_BY_REQUEST)) {
      const { error } = ERRORS[name as ErrorName]
      test(`${error} ${name}`, async (t) => {
        captureLog(t)
        const port = await serveProgram(
          t,
          { PLANT_STORE_HEADERS_TIMEOUT_MS: '200', PLANT_STORE_CHECK_INTERVAL_MS: '20', ...environment },
          store,
        )
        const answer = await ask(port, bring(origin === undefined ? '' : `Origin: ${origin}\r\n`))
        assert.equal((JSON.parse(answer.body) as { error: number }).error, error)
        assert.deepEqual(corsOf(answer), UNREAD.includes(name) ? unread : fields)
      })
    }

    for (const path of ['/plants', '/livez', '/readyz', '/openapi.json']) {
      test(`to GET ${path}`, async (t) => {
        captureLog(t)
        const port = await serveProgram(
          t,
          { PLANT_STORE_HEADERS_TIMEOUT_MS: '200', PLANT_STORE_CHECK_INTERVAL_MS: '20', ...environment },
          store,
        )
        const sent = origin === undefined ? '' : `Origin: ${origin}\r\n`
        const answer = await ask(
          port,
          `GET ${path} HTTP/1.1\r\n${sent}${HOST}${AUTHORIZATION}Connection: close\r\n\r\n`,
        )
        assert.equal(answer.status, 200)
        assert.deepEqual(corsOf(answer), fields)
      })
    }
  })
}

suite('a preflight', () => {
  const [PLANTS, PLANT] = RESOURCE_PATHS.map((path) => [...Object.keys(OPERATIONS[path]), 'OPTIONS'].join(', '))

  function preflight(path: string, origin: string, method = 'OPTIONS'): string {
    const fields = `Origin: ${origin}\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n`
    return `${method} ${path} HTTP/1.1\r\n${HOST}${fields}\r\n`
  }

  const rows = [
    ['/plants', PLANTS],
    ['/plants/1', PLANT],
    ['http://plants/%70lants', PLANTS],
    ['/readyz', 'GET, HEAD, OPTIONS'],
  ] as const
  for (const [path, methods] of rows) {
    for (const [origins, fields] of [
      ['https://a.example', { vary: 'Origin', ...allowed('https://a.example') }],
      ['*', allowed('*')],
    ] as const) {
      test(`for ${path} is answered without a token, with ${origins}`, async (t) => {
        captureLog(t)
        const port = await serveProgram(t, { PLANT_STORE_CORS_ORIGINS: origins })
        const answer = await ask(port, preflight(path, 'https://a.example'))
        assert.equal(answer.status, 204)
        assert.equal(answer.body, '')
        assert.equal(answer.headers.get('allow'), methods)
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
    const port = await serveProgram(t, LIST)
    const answer = await ask(port, preflight('/plants', 'https://evil.example'))
    assert.deepEqual([answer.status, corsOf(answer)], [204, { vary: 'Origin' }])
  })

  for (const [path, refusal, methods] of [
    ['/x', 404, {}],
    ['/plants/', 404, {}],
    ['/plants/%zz', 401, { 'access-control-allow-methods': PLANT }],
  ] as const) {
    test(`for ${path} is answered too, so that a page can read the error of the request itself`, async (t) => {
      captureLog(t)
      const port = await serveProgram(t, { PLANT_STORE_CORS_ORIGINS: '*' })
      const answer = await ask(port, preflight(path, 'https://a.example'))
      assert.deepEqual([answer.status, answer.body], [204, ''])
      assert.deepEqual(corsOf(answer), {
        ...allowed('*'),
        ...methods,
        'access-control-allow-headers': 'Authorization, Content-Type, X-Request-Id',
        'access-control-max-age': '7200',
      })
    })

    test(`for ${path} of another origin is refused as any OPTIONS is`, async (t) => {
      captureLog(t)
      const port = await serveProgram(t, LIST)
      const answer = await ask(port, preflight(path, 'https://evil.example'))
      assert.deepEqual([answer.status, corsOf(answer)], [refusal, { vary: 'Origin' }])
    })
  }

  for (const [what, request] of [
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
      const port = await serveProgram(t, { PLANT_STORE_CORS_ORIGINS: '*' })
      assert.deepEqual(corsOf(await ask(port, request)), allowed('*'))
    })
  }
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
    'https://app.example?',
    'file://',
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
