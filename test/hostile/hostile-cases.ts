import { gzipSync } from 'node:zlib'

/** Bytes that a malicious client sends, and how the server must respond. */
export interface HostileCase {
  /** What the bytes are, as a noun phrase. */
  readonly name: string
  readonly bytes: Buffer
  /** Whether the client sends a FIN after the bytes. */
  readonly endsConnection: boolean
  /**
   * For each response: the status if the request succeeds, the error code if the service rejects the request, or the
   * status with which `node:http` itself rejects the request without a body.
   */
  readonly responses: readonly (number | `node:http ${number}`)[]
  /**
   * The state of the connection after the responses: it accepts another request ("open"), is closed, discards the rest
   * of the rejected body, or waits for the rest of the request.
   */
  readonly connectionState: 'open' | 'closed' | 'discarding' | 'waiting'
  /** Whether the request creates its plant. */
  readonly isStored: boolean
}

const NODE_20 = process.versions.node.startsWith('20.')

const POST = 'POST /plants HTTP/1.1'
const HOST = 'Host: a\r\n'
const TOKEN = 'Authorization: Bearer ada\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'
const CLOSE = 'Connection: close\r\n'
const KEEP_ALIVE = 'Connection: keep-alive\r\n'
const PLANT = '{"id":1,"name":"Fern"}'
const LENGTH = `Content-Length: ${PLANT.length}\r\n`
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const CHUNK = `16\r\n${PLANT}\r\n`
const LAST_CHUNK = '0\r\n\r\n'

type Options = Partial<HostileCase>

const CLOSED: Options = { connectionState: 'closed' }
const DISCARDING: Options = { connectionState: 'discarding' }
const WAITING: Options = { connectionState: 'waiting' }
const ENDED: Options = { connectionState: 'closed', endsConnection: true }

function createCase(
  name: string,
  text: string | Buffer,
  responses: HostileCase['responses'],
  options: Options = {},
): HostileCase {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  return { name, bytes, responses, connectionState: 'open', isStored: false, endsConnection: false, ...options }
}

/** Creates a case that `node:http` rejects before the service gets the request. */
function rejectedByNode(name: string, bytes: string | Buffer, status = 400): HostileCase {
  return createCase(name, bytes, [`node:http ${status}`], CLOSED)
}

/** Creates a case with unusual but valid bytes, which create the plant. */
function storedCase(name: string, bytes: string): HostileCase {
  return createCase(name, bytes, [200], { isStored: true })
}

/** Builds a request without a body. */
function request(line: string, fields = HOST + TOKEN): string {
  return `${line}\r\n${fields}\r\n`
}

function get(fields: string): string {
  return request('GET /plants HTTP/1.1', fields)
}

/** Builds a POST with the given header fields, which determine the length of the body. */
function post(fields: string, body: string): string {
  return request(POST, HOST + TOKEN + JSON_TYPE + fields) + body
}

/** Builds a request whose body looks like a second request. */
function hideInBody(line: string): string {
  const hidden = post(LENGTH, PLANT)
  return request(line, `${HOST + TOKEN}Content-Length: ${hidden.length}\r\n`) + hidden
}

function postChunks(chunks: string): string {
  return post(CHUNKED, chunks)
}

/** Builds a POST in one chunk, with the given header fields instead of a valid Transfer-Encoding. */
function postChunkedWith(fields: string): string {
  return post(fields, CHUNK + LAST_CHUNK)
}

function postBody(body: string | Buffer, fields = ''): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return Buffer.concat([Buffer.from(post(`Content-Length: ${bytes.length}\r\n${fields}`, '')), bytes])
}

const EXPECT_CONTINUE = 'Expect: 100-continue\r\n'

function withTrailer(fields: string, trailer: string): string {
  return `${request(POST, fields + CHUNKED + CLOSE)}${CHUNK}0\r\n${trailer}\r\n`
}

/**
 * Builds two requests and the beginning of a third. Node rejects the first one, which has no Host, and has closed the
 * connection by the time it reads the body of the second.
 */
function createUnfinishedRequests(version: string): string {
  const content = 'Host: a\r\nContent-Length: 5\r\n\r\nhello'
  return `GET /plants HTTP/1.1\r\n\r\nPOST /plants HTTP/1.1\r\n${content}GET /plants${version}\r\n${content}GET`
}

const NESTING_DEPTH = 100_000

/** A body of 16 KiB that decompresses to 16 MiB. */
const GZIP_BOMB = gzipSync(Buffer.alloc(16 * 2 ** 20))

/** The cases, by topic. */
// prettier-ignore
export const HOSTILE_CASES: Readonly<Record<string, readonly HostileCase[]>> = {
  'body lengths': [
    rejectedByNode('Content-Length followed by Transfer-Encoding', postChunkedWith(LENGTH + CHUNKED)),
    rejectedByNode('Transfer-Encoding followed by Content-Length', postChunkedWith(CHUNKED + LENGTH)),
    rejectedByNode('two identical Content-Length fields', post(LENGTH + LENGTH, PLANT)),
    rejectedByNode('two different Content-Length fields', post(`${LENGTH}Content-Length: 1\r\n`, PLANT)),
    // RFC 9110 section 8.6
    ...['22, 22', '22, 1', '+22', '-1', '-0', '0x16', '0o26', '2_2', '2 2', 'abc', '', '22.0', '99999999999999999999999'].map(
      (length) => rejectedByNode(`Content-Length: ${length}`, post(`Content-Length: ${length}\r\n`, PLANT)),
    ),
    rejectedByNode('a space before the colon of Content-Length', post('Content-Length : 22\r\n', PLANT)),
    storedCase('Content-Length: 0000022', post('Content-Length: 0000022\r\n', PLANT)),
    storedCase('white space around a Content-Length', post('Content-Length: \t 22  \r\n', PLANT)), // RFC 9110 section 5.5
    storedCase('header fields named Content_Length and Transfer_Encoding', post(`${LENGTH}Content_Length: 1\r\nTransfer_Encoding: chunked\r\n`, PLANT)),
    ...['9007199254740993', '18446744073709551615'].map((length) =>
      createCase(`Content-Length: ${length}`, post(`Content-Length: ${length}\r\n`, PLANT), [41300], DISCARDING),
    ),
    rejectedByNode('a body without a length', post('', PLANT)),
    createCase('a body longer than its Content-Length', post(LENGTH, PLANT + PLANT), [200, 'node:http 400'], { ...CLOSED, isStored: true }),
    createCase('a body followed by a request', post(LENGTH, PLANT + get(HOST + TOKEN)), [200, 200], { isStored: true }),
    createCase('a body shorter than its Content-Length', post('Content-Length: 23\r\n', PLANT), [], WAITING),
    // RFC 9110 section 9.3
    ...([['GET /plants', 200], ['OPTIONS /plants', 204], ['DELETE /plants/1', 40401], ['TRACE /plants', 40500]] as const).map(
      ([line, answer]) => createCase(`${line} with a body that looks like a request`, hideInBody(`${line} HTTP/1.1`), [answer]),
    ),
  ],
  chunks: [
    ...['-1', '0x16', 'FFFFFFFFFFFFFFFFF', '16 ', ' 16', '', '+16', 'g', '1_6'].map((size) =>
      rejectedByNode(`the chunk size "${size}"`, postChunks(`${size}\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    ),
    createCase('a chunk size of 2^64 - 1', postChunks(`FFFFFFFFFFFFFFFF\r\n${PLANT}`), [], WAITING),
    storedCase('a chunk size with 1,000 leading zeros', postChunks('0'.repeat(1000) + CHUNK + LAST_CHUNK)),
    rejectedByNode('a chunk shorter than its size', postChunks(`17\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    rejectedByNode('a chunk longer than its size', postChunks(`15\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    storedCase('a chunk size in upper case', postChunks(`1A\r\n${PLANT}    \r\n${LAST_CHUNK}`)),
    rejectedByNode('a bare CR after a chunk size', postChunks(`16\r${PLANT}\r\n${LAST_CHUNK}`)),
    rejectedByNode('a bare LF after a chunk size', postChunks(`16\n${PLANT}\r\n${LAST_CHUNK}`)),
    rejectedByNode('a bare LF after a chunk', postChunks(`16\r\n${PLANT}\n${LAST_CHUNK}`)),
    rejectedByNode('a chunk without a line ending', postChunks(`16\r\n${PLANT}${LAST_CHUNK}`)),
    rejectedByNode('a bare LF after the last chunk', postChunks(`${CHUNK}0\r\n\n`)),
    createCase('a body without a last chunk', postChunks(CHUNK), [], WAITING),
    createCase('a body that consists only of the last chunk', postChunks(LAST_CHUNK), [40001]),
    storedCase('a body in one-byte chunks', postChunks(PLANT.replace(/./g, '1\r\n$&\r\n') + LAST_CHUNK)),
    storedCase('chunk extensions', postChunks(`16;a=b;c="d"\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    // RFC 9112 section 7.1.1
    ...['', '[=a', '\0', 'a\rb', 'a\nb', 'a\n'].map((extension) =>
      rejectedByNode(`the chunk extension ${JSON.stringify(extension)}`, postChunks(`16;${extension}\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    ),
    rejectedByNode('chunk extensions of 20,000 bytes', postChunks(CHUNK.replace('\r', `;${'a'.repeat(20_000)}\r`)), 413),
  ],
  'transfer codings': [
    createCase('Transfer-Encoding: gzip, chunked', postChunkedWith('Transfer-Encoding: gzip, chunked\r\n'), [50100], CLOSED),
    createCase('Transfer-Encoding: , chunked', postChunkedWith('Transfer-Encoding: , chunked\r\n'), [50100], CLOSED),
    createCase('gzip and chunked in two Transfer-Encoding fields', postChunkedWith(`Transfer-Encoding: gzip\r\n${CHUNKED}`), [50100], CLOSED),
    // Node rejects these only when it parses the body.
    ...['gzip', 'identity', 'xchunked', '"chunked"', 'chunked;q=1'].map((coding) =>
      createCase(`Transfer-Encoding: ${coding}`, postChunkedWith(`Transfer-Encoding: ${coding}\r\n`), [50100], CLOSED),
    ),
    ...['chunked, gzip', 'chunked, chunked'].map((coding) =>
      rejectedByNode(`Transfer-Encoding: ${coding}`, postChunkedWith(`Transfer-Encoding: ${coding}\r\n`)),
    ),
    ...['\x0bchunked', '\x0cchunked', 'chunked\0', 'chunked,', '\r\n chunked'].map((coding) =>
      rejectedByNode(`Transfer-Encoding: ${JSON.stringify(coding)}`, postChunkedWith(`Transfer-Encoding: ${coding}\r\n`)),
    ),
    rejectedByNode('a space before the colon of Transfer-Encoding', postChunkedWith('Transfer-Encoding : chunked\r\n')),
    rejectedByNode('chunked and identity in two Transfer-Encoding fields', postChunkedWith(`${CHUNKED}Transfer-Encoding: identity\r\n`)),
    createCase('a GET with Transfer-Encoding: gzip', get(`${HOST + TOKEN}Transfer-Encoding: gzip\r\n`), [50100], CLOSED),
    rejectedByNode('two Transfer-Encoding: chunked fields', postChunkedWith(CHUNKED + CHUNKED)),
    NODE_20
      ? createCase('an empty Transfer-Encoding', postChunkedWith('Transfer-Encoding:\r\n'), [50100], CLOSED)
      : rejectedByNode('an empty Transfer-Encoding', postChunkedWith('Transfer-Encoding:\r\n')),
    // Node 20 uses the Content-Length, so the response must close the connection (RFC 9112 section 6.1).
    NODE_20
      ? createCase('an empty Transfer-Encoding and Content-Length', post(`Transfer-Encoding:\r\n${LENGTH}`, PLANT), [50100], CLOSED)
      : rejectedByNode('an empty Transfer-Encoding and Content-Length', post(`Transfer-Encoding:\r\n${LENGTH}`, PLANT)),
    storedCase('Transfer-Encoding: CHUNKED', postChunkedWith('Transfer-Encoding:\tCHUNKED \r\n')),
  ],
  'header fields': [
    rejectedByNode('a folded header field', get(`${HOST + TOKEN}X: a\r\n b\r\n`)),
    rejectedByNode('a folded Authorization field', get(`${HOST}Authorization: Bearer\r\n ada\r\n`)),
    rejectedByNode('a folded line before the first header field', get(` X: a\r\n${HOST + TOKEN}`)),
    rejectedByNode('a line with a single space before the first header field', get(` \r\n${HOST + TOKEN}`)), // RFC 9112 section 2.2
    rejectedByNode('a bare LF after every line', get(HOST + TOKEN).replaceAll('\r\n', '\n')),
    rejectedByNode('a bare LF after a field', get(`${HOST + TOKEN}X: a\n`)),
    rejectedByNode('a bare LF after the request line', get(HOST + TOKEN).replace('\r\n', '\n')),
    rejectedByNode('a bare LF after the header', post(LENGTH, PLANT).replace('\r\n\r\n', '\r\n\n')),
    rejectedByNode('a bare CR after a field', get(`${HOST + TOKEN}X: a\r`)),
    rejectedByNode('a bare CR in a field', get(`${HOST + TOKEN}X: a\rY: b\r\n`)),
    ...[0x00, 0x01, 0x0b, 0x7f].map((code) =>
      rejectedByNode(`the control character ${code} in a header field`, get(`${HOST + TOKEN}X: ${String.fromCharCode(code)}\r\n`)),
    ),
    rejectedByNode('a bare CR instead of the empty line', get(HOST + TOKEN).replace('\r\n\r\n', '\r\n\rX: a\r\n\r\n')),
    // RFC 9112 section 5.1
    ...['X\0', 'X\tY', 'X[]', 'X\xeb', 'X '].map((name) =>
      rejectedByNode(`the field name ${JSON.stringify(name)}`, get(`${HOST + TOKEN}${name}: a\r\n`)),
    ),
    rejectedByNode('NUL in a token', get(`${HOST}Authorization: Bearer ada\0\r\n`)),
    rejectedByNode('a field without a colon', get(`${HOST + TOKEN}nothing\r\n`)),
    rejectedByNode('a field without a name', get(`${HOST + TOKEN}: a\r\n`)),
    createCase('non-ASCII bytes in a header field', get(`${HOST + TOKEN}X: \xff\xfe\r\n`), [200]),
    createCase('non-ASCII bytes in a token', get(`${HOST}Authorization: Bearer ada\xff\r\n`), [40101]),
    createCase('header fields named __proto__ and constructor', get(`${HOST + TOKEN}__proto__: a\r\nconstructor: b\r\n`), [200]),
    rejectedByNode('a request without a Host field', get(TOKEN)),
    createCase('two identical Host fields', get(HOST + HOST + TOKEN), [40000]),
    createCase('two different Host fields', get(`${HOST}Host: b\r\n${TOKEN}`), [40000]),
    createCase('an empty Host field', get(`Host:\r\n${TOKEN}`), [200]),
    createCase('two Content-Type fields', post(JSON_TYPE + LENGTH + CLOSE, PLANT), [40000], CLOSED),
  ],
  'header sizes': [
    createCase('999 header fields', get(HOST + TOKEN + 'a:\r\n'.repeat(997)), [200]),
    createCase('1,000 header fields', get(HOST + TOKEN + 'a:\r\n'.repeat(998)), [43100]),
    // Node 20 drops every header field after the first 2,000; newer versions reject the request.
    NODE_20
      ? createCase('3,000 header fields', get(HOST + 'a:\r\n'.repeat(2998) + TOKEN), [43100])
      : rejectedByNode('3,000 header fields', get(HOST + 'a:\r\n'.repeat(2998) + TOKEN), 431),
    rejectedByNode('3,000 header fields, the last of which is Host', get('a:\r\n'.repeat(2998) + TOKEN + HOST), NODE_20 ? 400 : 431),
    createCase('a header of 16,000 bytes', get(`${HOST + TOKEN}a: ${'x'.repeat(15_900)}\r\n`), [200]),
    rejectedByNode('a header of 17,000 bytes', get(`${HOST + TOKEN}a: ${'x'.repeat(17_000)}\r\n`), 431),
    rejectedByNode('a field name of 17,000 bytes', get(`${HOST + TOKEN}${'x'.repeat(17_000)}: a\r\n`), 431),
    createCase('a target of 15,000 bytes', request(`GET /plants?${'x'.repeat(15_000)} HTTP/1.1`), [200]),
    rejectedByNode('a target of 17,000 bytes', request(`GET /plants?${'x'.repeat(17_000)} HTTP/1.1`), 431),
    createCase('a token of 8 KiB', get(`${HOST}Authorization: Bearer ${'x'.repeat(8192)}\r\n`), [40101]),
    createCase('8 KiB of spaces before a token', get(`${HOST}Authorization: Bearer${' '.repeat(8192)}ada\r\n`), [200]),
    createCase('8 KiB of spaces before an invalid token', get(`${HOST}Authorization: Bearer${' '.repeat(8192)}!\r\n`), [40101]),
    createCase(
      '8 KiB of unterminated Content-Type parameters',
      post(LENGTH + CLOSE, PLANT).replace('/json', `/json${';a="\\"'.repeat(1600)}`),
      [41500],
      CLOSED,
    ),
  ],
  'request lines': [
    createCase('a request line without a version', 'GET /plants\r\n\r\n', [40100], CLOSED),
    createCase('a request line without a version or an empty line', 'GET /plants\r\n', [], WAITING),
    createCase('an HTTP/0.9 request', request('GET /plants HTTP/0.9'), [200], CLOSED),
    createCase('an HTTP/1.0 request', request('GET /plants HTTP/1.0', TOKEN), [200], CLOSED),
    createCase('an HTTP/1.0 request with keep-alive', request('GET /plants HTTP/1.0', TOKEN + KEEP_ALIVE), [200]),
    createCase('an HTTP/2.0 request', request('GET /plants HTTP/2.0'), [200], CLOSED),
    createCase('an HTTP/2.0 request with a body', request('POST /plants HTTP/2.0', HOST + LENGTH + KEEP_ALIVE), [40100], DISCARDING),
    // RFC 9112 section 2.3
    ...['HTTP/1.2', 'HTTP/3.0', 'HTTP/11', 'HTTP/1', 'HTTP/01.01', 'HTTP/ 1.1', 'http/1.1', ''].map((version) =>
      rejectedByNode(`the HTTP version "${version}"`, request(`GET /plants ${version}`)),
    ),
    rejectedByNode('the HTTP/2 connection preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    rejectedByNode('a TLS ClientHello', Buffer.from('16030102000100010001fc0303'.padEnd(400, '0'), 'hex')),
    rejectedByNode('a space before the method', request(' GET /plants HTTP/1.1')),
    rejectedByNode('tabs in the request line', request('GET\t/plants\tHTTP/1.1')),
    createCase('two spaces before the target', request('GET  /plants HTTP/1.1'), [200]), // RFC 9112 section 3
    rejectedByNode('a request line without a target', request('GET HTTP/1.1')),
    rejectedByNode('a bare CR after the request line', get(HOST + TOKEN).replace('\r\n', '\r')), // RFC 9112 section 2.2
    rejectedByNode('a space in the target', request('GET /plants /1 HTTP/1.1')),
    rejectedByNode('NUL in the target', request('GET /plants\0 HTTP/1.1')),
    rejectedByNode('a non-ASCII byte in the target', request('DELETE /plants/\xff HTTP/1.1')),
    rejectedByNode('an unknown method', request('BREW /plants HTTP/1.1')),
    rejectedByNode('a method in lower case', request('get /plants HTTP/1.1')),
    createCase('empty lines before a request', `\r\n\r\n${get(HOST + TOKEN)}`, [200]),
    rejectedByNode('a line of spaces before a request', `   \r\n\r\n${get(HOST + TOKEN)}`),
    createCase('a TRACE request', request('TRACE /plants HTTP/1.1'), [40500]),
    createCase('a target in absolute form', request('GET http://b:80/plants HTTP/1.1'), [200]),
    createCase('a target in absolute form without a path', request('GET http://b HTTP/1.1'), [40400]),
    // RFC 9112 section 3.2.4
    ...['OPTIONS', 'GET'].map((method) => createCase(`${method} *`, request(`${method} * HTTP/1.1`), [40400])),
    createCase('a CONNECT request', request('CONNECT b:443 HTTP/1.1'), [], CLOSED),
    rejectedByNode('a target without a slash', request('GET plants HTTP/1.1')),
    createCase('dot segments in the target', request('GET /x/../plants HTTP/1.1'), [40400]),
    createCase('backslashes in the target', request('GET /x\\..\\plants HTTP/1.1'), [40400]),
    createCase('percent-encoded CR LF in the target', request('DELETE /plants/1%0d%0aX:%20a HTTP/1.1'), [40003]),
    createCase('a fragment in the target', request('GET /plants#1 HTTP/1.1'), [40400]),
  ],
  'upgrades, expectations, trailers and disconnects': [
    createCase('an upgrade to WebSocket', get(`${HOST + TOKEN}Connection: Upgrade\r\nUpgrade: websocket\r\n`), [200], CLOSED),
    // RFC 9110 section 7.8
    createCase('an Upgrade field without Connection: upgrade', get(`${HOST + TOKEN}Upgrade: websocket\r\n`), [200], CLOSED),
    createCase('an upgrade in HTTP/1.0', get(`${HOST + TOKEN}Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n`).replace('/1.1', '/1.0'), [200], CLOSED),
    createCase('an upgrade to HTTP/2 with a body', post(`${LENGTH}Connection: Upgrade\r\nUpgrade: h2c\r\n`, PLANT), [200], {
      ...CLOSED,
      isStored: true,
    }),
    createCase('Expect: 100-continue', post(LENGTH + EXPECT_CONTINUE, PLANT), [100, 200], { isStored: true }),
    createCase('Expect: 100-continue without a token', request(POST, HOST + LENGTH + EXPECT_CONTINUE), [100, 40100], DISCARDING),
    createCase('Expect: 100-continue in HTTP/1.0', post(LENGTH + EXPECT_CONTINUE, PLANT).replace('/1.1', '/1.0'), [200], { ...CLOSED, isStored: true }),
    createCase('Expect: the moon', get(`${HOST + TOKEN}Expect: the moon\r\n`), ['node:http 417']),
    // RFC 9110 section 14.2
    storedCase('a POST with a Range', post(`${LENGTH}Range: bytes=0-1\r\n`, PLANT)),
    createCase('a Range field with 1,000 ranges', get(`${HOST + TOKEN}Range: bytes=${'0-,'.repeat(999)}0-\r\n`), [200]),
    // RFC 9110 section 6.5.1
    createCase('an Authorization field in a trailer', withTrailer(HOST + JSON_TYPE, TOKEN), [40100], CLOSED),
    createCase('a Content-Type field in a trailer', withTrailer(HOST + TOKEN, JSON_TYPE), [41500], CLOSED),
    storedCase('a second Authorization field in a trailer', postChunks(`${CHUNK}0\r\nAuthorization: Bearer bob\r\n\r\n`)),
    storedCase('a second Host field in a trailer', postChunks(`${CHUNK}0\r\nHost: b\r\n\r\n`)),
    rejectedByNode('Transfer-Encoding in a trailer', postChunks(`${CHUNK}0\r\n${CHUNKED}\r\n`)),
    rejectedByNode('Content-Length in a trailer', postChunks(`${CHUNK}0\r\nContent-Length: 5\r\n\r\n`)),
    rejectedByNode('a trailer of 20,000 bytes', postChunks(`${CHUNK}0\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), 431),
    ...['', ' HTTP/2.0'].map((version) =>
      createCase(`an${version || ' HTTP/0.9'} request after a request that closes the connection`, createUnfinishedRequests(version), ['node:http 400'], CLOSED),
    ),
    createCase('a request with Connection: close, followed by garbage', get(HOST + TOKEN + CLOSE) + PLANT, [200], CLOSED),
    createCase('a complete request and a FIN', post(LENGTH, PLANT), [200], { ...ENDED, isStored: true }),
    createCase('a FIN within the header', get(HOST).slice(0, -2), ['node:http 400'], ENDED),
    createCase('a FIN within the body', post(LENGTH, PLANT.slice(0, -1)), ['node:http 400'], ENDED),
    createCase('a FIN before the last chunk', postChunks(CHUNK), ['node:http 400'], ENDED),
    createCase('a FIN without a request', '', [], ENDED),
  ],
  bodies: [
    createCase('a gzip bomb', postBody(GZIP_BOMB, `Content-Encoding: gzip\r\n${CLOSE}`), [41501], CLOSED),
    createCase(`${NESTING_DEPTH} nested arrays`, postBody('['.repeat(NESTING_DEPTH)), [40001]),
    createCase(`${NESTING_DEPTH} nested objects`, postBody('{"a":'.repeat(NESTING_DEPTH)), [40001]),
    createCase(`${NESTING_DEPTH} nested arrays in a plant`, postBody(`{"id":1,"name":"a","x":${'['.repeat(NESTING_DEPTH)}${']'.repeat(NESTING_DEPTH)}}`), [40001]),
    createCase('an id with a million digits', postBody(`{"id":${'9'.repeat(1_000_000)},"name":"a"}`), [40002]),
    createCase('an id with a million decimal places', postBody(`{"id":0.${'9'.repeat(1_000_000)},"name":"a"}`), [40002]),
    createCase('an id whose exponent has a million digits', postBody(`{"id":1e${'9'.repeat(1_000_000)},"name":"a"}`), [40002]),
    createCase('a name with 200,000 escapes', postBody(`{"id":1,"name":"${'\\u0000'.repeat(200_000)}"}`), [40002]),
    createCase('a body with 100,000 members', postBody(`{${'"id":1,'.repeat(100_000)}"name":"a"}`), [40002]),
    createCase('a body over the size limit', postBody('a'.repeat(3 * 2 ** 20), CLOSE), [41300], CLOSED),
  ],
}
