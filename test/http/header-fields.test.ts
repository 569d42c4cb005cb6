import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { suite, test } from 'node:test'
import { checkBodyHeaders, checkHeader, hasAmbiguousFraming, headerValues } from '../../src/http/header-fields.ts'

suite('headerValues', () => {
  test('finds fields in any case, and returns all their values in order', () => {
    const rawHeaders = ['HOST', 'a', 'Vary', 'b', 'host', 'c', 'Hose', 'd']
    assert.deepEqual(headerValues({ rawHeaders }, 'host'), ['a', 'c'])
  })

  test('returns an empty array if the field is missing', () =>
    assert.deepEqual(headerValues({ rawHeaders: ['Host', 'a'] }, 'vary'), []))

  const headers = { host: 'a', vary: undefined, 'x-list': ['c', 'd'] } as unknown as IncomingHttpHeaders
  const requests: Record<string, Partial<IncomingMessage>> = {
    'is missing': { headers },
    'is empty': { headers, rawHeaders: [] },
  }
  for (const [condition, request] of Object.entries(requests)) {
    test(`reads headers if rawHeaders ${condition}`, () => {
      const values = ['host', 'vary', 'x-list', 'other'].map((name) => headerValues(request, name))
      assert.deepEqual(values, [['a'], [], ['c', 'd'], []])
    })
  }

  test('prefers rawHeaders to headers', () =>
    assert.deepEqual(headerValues({ rawHeaders: ['a', 'b'], headers }, 'host'), []))

  test('returns an empty array if rawHeaders and headers are missing', () =>
    assert.deepEqual(headerValues({}, 'host'), []))
})

const REJECTED: readonly (readonly [name: string, rawHeaders: readonly string[], error: number])[] = [
  ['two Host fields that differ in case', ['Host', 'a', 'host', 'a'], 40000],
  ['a thousand fields', Array.from({ length: 2000 }, () => 'a'), 43100],
  ['Transfer-Encoding: gzip, chunked', ['Transfer-Encoding', 'gzip, chunked'], 50100],
  ['Transfer-Encoding: chunked, chunked', ['Transfer-Encoding', 'chunked, chunked'], 50100],
  ['two Transfer-Encoding fields', ['Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked'], 50100],
  ['Transfer-Encoding: identity', ['Transfer-Encoding', 'identity'], 50100],
]

for (const [name, rawHeaders, error] of REJECTED) {
  test(`checkHeader rejects ${name} with error ${error}`, () =>
    assert.throws(() => checkHeader({ rawHeaders: [...rawHeaders] }), { error }))
}

const ACCEPTED: readonly (readonly [name: string, rawHeaders: readonly string[]])[] = [
  ['999 fields', Array.from({ length: 1998 }, () => 'a')],
  ...['etag', 'x-contenttyp', 'x-authorizati', 'accept-charset', 'x-content-encode', 'x-transfer-encode', 'x'].map(
    (name) => [`a repeated ${name} field, which the service does not use`, [name, 'a', name, 'b']] as const,
  ),
]
for (const [name, rawHeaders] of ACCEPTED) {
  test(`checkHeader accepts ${name}`, () => checkHeader({ rawHeaders: [...rawHeaders] }))
}

suite('hasAmbiguousFraming', () => {
  for (const [name, rawHeaders, httpVersionMinor, expected] of [
    ['chunked', ['Transfer-Encoding', 'Chunked'], 1, false],
    ['chunked in HTTP/1.0', ['Transfer-Encoding', 'chunked'], 0, true],
    ['gzip and chunked', ['Transfer-Encoding', 'gzip, chunked'], 1, true],
    ['an upgrade', ['UPGRADE', 'websocket'], 1, true],
    ['other fields', ['Content-Length', '7', 'Referer', '/', 'If-Modified-Since', '0'], 1, false],
  ] as const) {
    test(`returns ${expected} for ${name}`, () => {
      const request = { rawHeaders: [...rawHeaders], httpVersionMinor } as unknown as IncomingMessage
      assert.equal(hasAmbiguousFraming(request), expected)
    })
  }
})

/** Parameters after the media type. */
const ACCEPTED_SUFFIXES = [
  '',
  ';',
  ' ; ; charset=utf-8 ',
  ';charset="UTF-8"',
  ';charset="u\\tf-8"',
  ';profile="a;charset=latin1"',
]
const REJECTED_SUFFIXES = [
  ...[';charset=utf-8;charset=latin1', ';charset=utf-16', ';charset=x-utf-8', ';charset=utf-8-x', ';charset=""'],
  ...[';charset', ';charset=', '; charset = utf-8', ';charset="utf-8', ' charset=utf-8', ', text/plain', '+x'],
]

const createRequest = (contentType: string, ...codings: readonly string[]): Partial<IncomingMessage> => ({
  rawHeaders: ['Content-Type', contentType, ...codings.flatMap((coding) => ['Content-Encoding', coding])],
})

for (const type of ['APPLICATION/JSON', ...ACCEPTED_SUFFIXES.map((rest) => `application/json${rest}`)]) {
  test(`checkBodyHeaders accepts Content-Type: ${type}`, () => checkBodyHeaders(createRequest(type)))
}

const OTHER_TYPES = ['text/json', 'text/plain      ;a="application/json;"', '']
for (const type of [...OTHER_TYPES, ...REJECTED_SUFFIXES.map((rest) => `application/json${rest}`)]) {
  test(`checkBodyHeaders rejects Content-Type: ${type}`, () =>
    assert.throws(() => checkBodyHeaders(createRequest(type)), { error: 41500 }))
}

test('checkBodyHeaders rejects a request without a Content-Type', () =>
  assert.throws(() => checkBodyHeaders({ rawHeaders: [] }), { error: 41500 }))

for (const codings of [[], ['identity'], ['IDENTITY , identity'], ['identity', ''], [',']]) {
  test(`checkBodyHeaders accepts the content codings ${JSON.stringify(codings)}`, () =>
    checkBodyHeaders(createRequest('application/json', ...codings)))
}

for (const codings of [['gzip'], ['identity', 'br'], ['identity gzip']]) {
  test(`checkBodyHeaders rejects the content codings ${JSON.stringify(codings)}`, () =>
    assert.throws(() => checkBodyHeaders(createRequest('application/json', ...codings)), { error: 41501 }))
}
