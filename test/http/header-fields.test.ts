import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { suite, test } from 'node:test'
import { isValidHost, rawHeadersOf, readHeaderFields } from '../../src/http/header-fields.ts'

const EMPTY_FIELDS = {
  authorization: '',
  authorizationCount: 0,
  contentType: undefined,
  contentEncoding: '',
  contentLength: 0,
}

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
    const raw = ['HOST', 'a', 'Content-TYPE', 'b/c', 'CONTENT-length', '7', 'content-encoding', 'gzip']
    assert.deepEqual(readHeaderFields(raw), {
      ...EMPTY_FIELDS,
      contentType: 'b/c',
      contentLength: 7,
      contentEncoding: ',gzip',
    })
  })

  test('returns the last Authorization field and the number of Authorization fields', () => {
    const raw = ['Authorization', 'a', 'authorization', 'b']
    assert.deepEqual(readHeaderFields(raw), { ...EMPTY_FIELDS, authorization: 'b', authorizationCount: 2 })
  })

  test('joins all Content-Encoding fields into one list', () => {
    const raw = ['Content-Encoding', 'gzip', 'Content-Encoding', 'br']
    assert.deepEqual(readHeaderFields(raw), { ...EMPTY_FIELDS, contentEncoding: ',gzip,br' })
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
    assert.throws(() => readHeaderFields(rawHeaders), { error }))
}

const ACCEPTED: readonly (readonly [name: string, rawHeaders: readonly string[]])[] = [
  ['999 fields', Array.from({ length: 1998 }, () => 'a')],
  ['Transfer-Encoding: Chunked', ['Transfer-Encoding', 'Chunked']],
  ...['etag', 'x-contenttyp', 'x-authorizati', 'accept-charset', 'x-content-encode', 'x-transfer-encode', 'x'].map(
    (name) => [`a repeated ${name} field, which the service does not use`, [name, 'a', name, 'b']] as const,
  ),
]
for (const [name, rawHeaders] of ACCEPTED) {
  test(`readHeaderFields accepts ${name}`, () => assert.deepEqual(readHeaderFields(rawHeaders), EMPTY_FIELDS))
}

const ZONES = '[fe80::1%25eth0]:3000 [fe80::1%eth0] [::1%lo]:80 [fe80::1%25en%2F1] [FE80::1%br-lan.100]'.split(' ')
const HOSTS =
  "localhost a. _dmarc.a xn--4ca.example a%20b:65536 [::ffff:1.2.3.4] [v1F.a-b:c] a.example:80 127.0.0.1: [::1]:3000 [v1.a:b] %C3%A4.example a_b~!$&'()*+,;=-".split(
    ' ',
  )
const INVALID_HOSTS =
  '[fe80::1%] [fe80::1%25eth0/x] [fe80::1%zz%2] [%25lo] a%lo 1.2.3.4%lo [1.2.3.4] [::1::] [1:2] [12345::] [v1] [v.a] [vg.a] [::1]a [a] :80 <script> a/b a:b a:80:80 ::1 [::1 [] %4 %zz user@host a#b a?b \xe4'.split(
    ' ',
  )

for (const value of [...HOSTS, ...ZONES, ...INVALID_HOSTS, '', 'a b']) {
  const isTaken = HOSTS.includes(value) || ZONES.includes(value)
  test(`isValidHost ${isTaken ? 'accepts' : 'rejects'} "${value}"`, () => assert.equal(isValidHost(value), isTaken))
}
