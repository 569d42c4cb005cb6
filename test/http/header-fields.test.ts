import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { suite, test } from 'node:test'
import {
  checkBodyHeaders,
  hasAmbiguousFraming,
  rawHeadersOf,
  readHeaderFields,
  type HeaderFields,
} from '../../src/http/header-fields.ts'

const EMPTY_FIELDS: HeaderFields = readHeaderFields({ rawHeaders: [] })

suite('rawHeadersOf', () => {
  const raw = ['Host', 'a', 'host', 'b']
  const headers = { host: 'a', authorization: 'b', accept: undefined, 'x-list': ['c', 'd'] } as IncomingHttpHeaders
  const listed = ['host', 'a', 'authorization', 'b', 'x-list', 'c', 'x-list', 'd']

  test('returns the rawHeaders array itself', () => assert.equal(rawHeadersOf({ rawHeaders: raw, headers }), raw))

  test('returns the fields in headers if rawHeaders is missing', () => {
    assert.deepEqual(rawHeadersOf({ headers }), listed)
  })

  test('returns the fields in headers if rawHeaders is empty', () =>
    assert.deepEqual(rawHeadersOf({ rawHeaders: [], headers }), listed))

  test('returns an empty array if rawHeaders and headers are empty', () =>
    assert.deepEqual(rawHeadersOf({ rawHeaders: [], headers: {} }), []))
})

suite('readHeaderFields', () => {
  test('finds header fields in any case', () => {
    const raw = ['HOST', 'a', 'Content-TYPE', 'b/c', 'CONTENT-length', '7', 'content-encoding', 'gzip', 'Accept', '*']
    assert.deepEqual(readHeaderFields({ rawHeaders: raw }), {
      authorization: [],
      'content-encoding': ['gzip'],
      'content-length': ['7'],
      'content-type': ['b/c'],
      host: ['a'],
      'transfer-encoding': [],
    })
  })

  test('returns all values of a repeated field in order', () => {
    const raw = ['Authorization', 'a', 'Content-Encoding', 'gzip', 'authorization', 'b', 'Content-Encoding', 'br']
    assert.deepEqual(readHeaderFields({ rawHeaders: raw }), {
      ...EMPTY_FIELDS,
      authorization: ['a', 'b'],
      'content-encoding': ['gzip', 'br'],
    })
  })
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
  test(`readHeaderFields rejects ${name} with error ${error}`, () =>
    assert.throws(() => readHeaderFields({ rawHeaders: [...rawHeaders] }), { error }))
}

const ACCEPTED: readonly (readonly [name: string, rawHeaders: readonly string[]])[] = [
  ['999 fields', Array.from({ length: 1998 }, () => 'a')],
  ...['etag', 'x-contenttyp', 'x-authorizati', 'accept-charset', 'x-content-encode', 'x-transfer-encode', 'x'].map(
    (name) => [`a repeated ${name} field, which the service does not use`, [name, 'a', name, 'b']] as const,
  ),
]
for (const [name, rawHeaders] of ACCEPTED) {
  test(`readHeaderFields accepts ${name}`, () =>
    assert.deepEqual(readHeaderFields({ rawHeaders: [...rawHeaders] }), EMPTY_FIELDS))
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

const createFields = (contentType: string, ...codings: readonly string[]): HeaderFields => ({
  ...EMPTY_FIELDS,
  'content-type': [contentType],
  'content-encoding': codings,
})

for (const type of ['APPLICATION/JSON', ...ACCEPTED_SUFFIXES.map((rest) => `application/json${rest}`)]) {
  test(`checkBodyHeaders accepts Content-Type: ${type}`, () => checkBodyHeaders(createFields(type)))
}

const OTHER_TYPES = ['text/json', 'text/plain      ;a="application/json;"', '']
for (const type of [...OTHER_TYPES, ...REJECTED_SUFFIXES.map((rest) => `application/json${rest}`)]) {
  test(`checkBodyHeaders rejects Content-Type: ${type}`, () =>
    assert.throws(() => checkBodyHeaders(createFields(type)), { error: 41500 }))
}

test('checkBodyHeaders rejects a request without a Content-Type', () =>
  assert.throws(() => checkBodyHeaders(EMPTY_FIELDS), { error: 41500 }))

for (const codings of [[], ['identity'], ['IDENTITY , identity'], ['identity', ''], [',']]) {
  test(`checkBodyHeaders accepts the content codings ${JSON.stringify(codings)}`, () =>
    checkBodyHeaders(createFields('application/json', ...codings)))
}

for (const codings of [['gzip'], ['identity', 'br'], ['identity gzip']]) {
  test(`checkBodyHeaders rejects the content codings ${JSON.stringify(codings)}`, () =>
    assert.throws(() => checkBodyHeaders(createFields('application/json', ...codings)), { error: 41501 }))
}
