import { gzipSync } from 'node:zlib'

/** What a client sends that means no good, and what it gets. */
export interface HostileCase {
  readonly name: string
  readonly bytes: Buffer
  /** Whether the client ends its side of the connection after the bytes. */
  readonly isEnded: boolean
  /**
   * The status of each answer that succeeds, the error of one that the service refuses, or the status of what
   * `node:http` answers itself, which has no body.
   */
  readonly answers: readonly (number | `node:http ${number}`)[]
  /** Whether the connection takes another request, is closed at once, throws away what still comes, or waits for more. */
  readonly after: 'open' | 'closed' | 'discarding' | 'waiting'
  /** Whether the plant of the request is kept. */
  readonly isKept: boolean
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

const CLOSED: Options = { after: 'closed' }
const DISCARDING: Options = { after: 'discarding' }
const WAITING: Options = { after: 'waiting' }
const ENDED: Options = { after: 'closed', isEnded: true }

function row(name: string, text: string | Buffer, answers: HostileCase['answers'], options: Options = {}): HostileCase {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  return { name, bytes, answers, after: 'open', isKept: false, isEnded: false, ...options }
}

/** What `node:http` refuses before the service sees it. */
function bad(name: string, bytes: string | Buffer, status = 400): HostileCase {
  return row(name, bytes, [`node:http ${status}`], CLOSED)
}

/** What looks odd, and is a sound request for all that. */
function kept(name: string, bytes: string): HostileCase {
  return row(name, bytes, [200], { isKept: true })
}

/** A request without a body. */
function request(line: string, fields = HOST + TOKEN): string {
  return `${line}\r\n${fields}\r\n`
}

function get(fields: string): string {
  return request('GET /plants HTTP/1.1', fields)
}

/** A POST whose framing is in these fields. */
function post(fields: string, body: string): string {
  return request(POST, HOST + TOKEN + JSON_TYPE + fields) + body
}

/** A request in the body of another. */
function hide(line: string): string {
  const hidden = post(LENGTH, PLANT)
  return request(line, `${HOST + TOKEN}Content-Length: ${hidden.length}\r\n`) + hidden
}

function postChunks(chunks: string): string {
  return post(CHUNKED, chunks)
}

/** A POST in one chunk, with these fields in place of the sound Transfer-Encoding. */
function postCoded(fields: string): string {
  return post(fields, CHUNK + LAST_CHUNK)
}

function postBody(body: string | Buffer, fields = ''): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return Buffer.concat([Buffer.from(post(`Content-Length: ${bytes.length}\r\n${fields}`, '')), bytes])
}

const CONTINUE = 'Expect: 100-continue\r\n'

function withTrailer(fields: string, trailer: string): string {
  return `${request(POST, fields + CHUNKED + CLOSE)}${CHUNK}0\r\n${trailer}\r\n`
}

/** Node refuses the first itself, as it has no Host, and has closed the connection when the second's body is read. */
function unfinished(version: string): string {
  const content = 'Host: a\r\nContent-Length: 5\r\n\r\nhello'
  return `GET /plants HTTP/1.1\r\n\r\nPOST /plants HTTP/1.1\r\n${content}GET /plants${version}\r\n${content}GET`
}

const DEEP = 100_000

/** 16 KiB that stand for 16 MiB. */
const BOMB = gzipSync(Buffer.alloc(16 * 2 ** 20))

/** The cases, by what they try. */
// prettier-ignore
export const HOSTILE_CASES: Readonly<Record<string, readonly HostileCase[]>> = {
  'lengths of a body': [
    bad('Content-Length and Transfer-Encoding', postCoded(LENGTH + CHUNKED)),
    bad('Transfer-Encoding and Content-Length', postCoded(CHUNKED + LENGTH)),
    bad('two Content-Length fields that agree', post(LENGTH + LENGTH, PLANT)),
    bad('two Content-Length fields that differ', post(`${LENGTH}Content-Length: 1\r\n`, PLANT)),
    // RFC 9110 section 8.6
    ...['22, 22', '22, 1', '+22', '-1', '-0', '0x16', '0o26', '2_2', '2 2', 'abc', '', '22.0', '99999999999999999999999'].map(
      (length) => bad(`Content-Length: ${length}`, post(`Content-Length: ${length}\r\n`, PLANT)),
    ),
    bad('a space before the colon of Content-Length', post('Content-Length : 22\r\n', PLANT)),
    kept('Content-Length: 0000022', post('Content-Length: 0000022\r\n', PLANT)),
    kept('blanks around a Content-Length', post('Content-Length: \t 22  \r\n', PLANT)), // RFC 9110 section 5.5
    kept('fields named like lengths', post(`${LENGTH}Content_Length: 1\r\nTransfer_Encoding: chunked\r\n`, PLANT)),
    ...['9007199254740993', '18446744073709551615'].map((length) =>
      row(`Content-Length: ${length}`, post(`Content-Length: ${length}\r\n`, PLANT), [41300], DISCARDING),
    ),
    bad('a body without a length', post('', PLANT)),
    row('a body longer than its Content-Length', post(LENGTH, PLANT + PLANT), ['node:http 400'], { ...CLOSED, isKept: true }),
    row('a body that goes on as a request', post(LENGTH, PLANT + get(HOST + TOKEN)), [200, 200], { isKept: true }),
    row('a body shorter than its Content-Length', post('Content-Length: 23\r\n', PLANT), [], WAITING),
    // RFC 9110 section 9.3
    ...([['GET /plants', 200], ['OPTIONS /plants', 204], ['DELETE /plants/1', 40401], ['TRACE /plants', 40500]] as const).map(
      ([line, answer]) => row(`a request in the body of ${line}`, hide(`${line} HTTP/1.1`), [answer]),
    ),
  ],
  chunks: [
    ...['-1', '0x16', 'FFFFFFFFFFFFFFFFF', '16 ', ' 16', '', '+16', 'g', '1_6'].map((size) =>
      bad(`the chunk size "${size}"`, postChunks(`${size}\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    ),
    row('a chunk size of 2^64 - 1', postChunks(`FFFFFFFFFFFFFFFF\r\n${PLANT}`), [], WAITING),
    kept('a chunk size with a thousand zeros before', postChunks('0'.repeat(1000) + CHUNK + LAST_CHUNK)),
    bad('a chunk shorter than its size', postChunks(`17\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    bad('a chunk longer than its size', postChunks(`15\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    kept('a chunk size in capitals', postChunks(`1A\r\n${PLANT}    \r\n${LAST_CHUNK}`)),
    bad('a bare CR after a chunk size', postChunks(`16\r${PLANT}\r\n${LAST_CHUNK}`)),
    bad('a bare LF after a chunk size', postChunks(`16\n${PLANT}\r\n${LAST_CHUNK}`)),
    bad('a bare LF after a chunk', postChunks(`16\r\n${PLANT}\n${LAST_CHUNK}`)),
    bad('nothing after a chunk', postChunks(`16\r\n${PLANT}${LAST_CHUNK}`)),
    bad('a bare LF after the last chunk', postChunks(`${CHUNK}0\r\n\n`)),
    row('no last chunk', postChunks(CHUNK), [], WAITING),
    row('only the last chunk', postChunks(LAST_CHUNK), [40001]),
    kept('a chunk of each byte', postChunks(PLANT.replace(/./g, '1\r\n$&\r\n') + LAST_CHUNK)),
    kept('chunk extensions', postChunks(`16;a=b;c="d"\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    // RFC 9112 section 7.1.1
    ...['', '[=a', '\0', 'a\rb', 'a\nb', 'a\n'].map((extension) =>
      bad(`the chunk extension ${JSON.stringify(extension)}`, postChunks(`16;${extension}\r\n${PLANT}\r\n${LAST_CHUNK}`)),
    ),
    bad('chunk extensions of 20,000 bytes', postChunks(CHUNK.replace('\r', `;${'a'.repeat(20_000)}\r`)), 413),
  ],
  'transfer codings': [
    row('gzip, chunked', postCoded('Transfer-Encoding: gzip, chunked\r\n'), [50100], CLOSED),
    row('nothing, chunked', postCoded('Transfer-Encoding: , chunked\r\n'), [50100], CLOSED),
    row('gzip and chunked in two fields', postCoded(`Transfer-Encoding: gzip\r\n${CHUNKED}`), [50100], CLOSED),
    ...['gzip', 'identity', 'xchunked', '"chunked"', 'chunked, gzip', 'chunked, chunked', 'chunked;q=1'].map((coding) =>
      bad(coding, postCoded(`Transfer-Encoding: ${coding}\r\n`)),
    ),
    ...['\x0bchunked', '\x0cchunked', 'chunked\0', 'chunked,', '\r\n chunked'].map((coding) =>
      bad(`Transfer-Encoding: ${JSON.stringify(coding)}`, postCoded(`Transfer-Encoding: ${coding}\r\n`)),
    ),
    bad('a space before the colon of Transfer-Encoding', postCoded('Transfer-Encoding : chunked\r\n')),
    bad('chunked and identity in two fields', postCoded(`${CHUNKED}Transfer-Encoding: identity\r\n`)),
    bad('Transfer-Encoding: gzip of a GET', get(`${HOST + TOKEN}Transfer-Encoding: gzip\r\n`)),
    bad('two fields Transfer-Encoding: chunked', postCoded(CHUNKED + CHUNKED)),
    bad('an empty Transfer-Encoding', postCoded('Transfer-Encoding:\r\n')),
    // Node 20 takes the Content-Length, so the response must close the connection (RFC 9112 section 6.1).
    NODE_20
      ? row('an empty Transfer-Encoding and Content-Length', post(`Transfer-Encoding:\r\n${LENGTH}`, PLANT), [50100], CLOSED)
      : bad('an empty Transfer-Encoding and Content-Length', post(`Transfer-Encoding:\r\n${LENGTH}`, PLANT)),
    kept('Transfer-Encoding: CHUNKED', postCoded('Transfer-Encoding:\tCHUNKED \r\n')),
  ],
  'header fields': [
    bad('a folded field', get(`${HOST + TOKEN}X: a\r\n b\r\n`)),
    bad('a folded Authorization', get(`${HOST}Authorization: Bearer\r\n ada\r\n`)),
    bad('a fold before the first field', get(` X: a\r\n${HOST + TOKEN}`)),
    bad('a line of a space before the first field', get(` \r\n${HOST + TOKEN}`)), // RFC 9112 section 2.2
    bad('a bare LF after every line', get(HOST + TOKEN).replaceAll('\r\n', '\n')),
    bad('a bare LF after a field', get(`${HOST + TOKEN}X: a\n`)),
    bad('a bare LF after the request line', get(HOST + TOKEN).replace('\r\n', '\n')),
    bad('a bare LF after the header', post(LENGTH, PLANT).replace('\r\n\r\n', '\r\n\n')),
    bad('a bare CR after a field', get(`${HOST + TOKEN}X: a\r`)),
    bad('a bare CR in a field', get(`${HOST + TOKEN}X: a\rY: b\r\n`)),
    ...[0x00, 0x01, 0x0b, 0x7f].map((code) =>
      bad(`the control character ${code} in a field`, get(`${HOST + TOKEN}X: ${String.fromCharCode(code)}\r\n`)),
    ),
    bad('a bare CR in place of the empty line', get(HOST + TOKEN).replace('\r\n\r\n', '\r\n\rX: a\r\n\r\n')),
    // RFC 9112 section 5.1
    ...['X\0', 'X\tY', 'X[]', 'X\xeb', 'X '].map((name) =>
      bad(`the field name ${JSON.stringify(name)}`, get(`${HOST + TOKEN}${name}: a\r\n`)),
    ),
    bad('NUL in a token', get(`${HOST}Authorization: Bearer ada\0\r\n`)),
    bad('a field without a colon', get(`${HOST + TOKEN}nothing\r\n`)),
    bad('a field without a name', get(`${HOST + TOKEN}: a\r\n`)),
    row('bytes beyond ASCII in a field', get(`${HOST + TOKEN}X: \xff\xfe\r\n`), [200]),
    row('bytes beyond ASCII in a token', get(`${HOST}Authorization: Bearer ada\xff\r\n`), [40101]),
    row('fields named like members of every object', get(`${HOST + TOKEN}__proto__: a\r\nconstructor: b\r\n`), [200]),
    bad('no Host', get(TOKEN)),
    row('two Host fields that agree', get(HOST + HOST + TOKEN), [40000]),
    row('two Host fields that differ', get(`${HOST}Host: b\r\n${TOKEN}`), [40000]),
    row('an empty Host', get(`Host:\r\n${TOKEN}`), [200]),
    row('two Content-Type fields', post(JSON_TYPE + LENGTH + CLOSE, PLANT), [40000], CLOSED),
  ],
  'sizes of a header': [
    row('999 fields', get(HOST + TOKEN + 'a:\r\n'.repeat(997)), [200]),
    row('1,000 fields', get(HOST + TOKEN + 'a:\r\n'.repeat(998)), [43100]),
    // Node 20 drops every field after the first 2,000, newer ones refuse them.
    NODE_20
      ? row('3,000 fields', get(HOST + 'a:\r\n'.repeat(2998) + TOKEN), [43100])
      : bad('3,000 fields', get(HOST + 'a:\r\n'.repeat(2998) + TOKEN), 431),
    bad('3,000 fields, Host the last', get('a:\r\n'.repeat(2998) + TOKEN + HOST), NODE_20 ? 400 : 431),
    row('a header of 16,000 bytes', get(`${HOST + TOKEN}a: ${'x'.repeat(15_900)}\r\n`), [200]),
    bad('a header of 17,000 bytes', get(`${HOST + TOKEN}a: ${'x'.repeat(17_000)}\r\n`), 431),
    bad('a field name of 17,000 bytes', get(`${HOST + TOKEN}${'x'.repeat(17_000)}: a\r\n`), 431),
    row('a target of 15,000 bytes', request(`GET /plants?${'x'.repeat(15_000)} HTTP/1.1`), [200]),
    bad('a target of 17,000 bytes', request(`GET /plants?${'x'.repeat(17_000)} HTTP/1.1`), 431),
    row('a token of 8 KiB', get(`${HOST}Authorization: Bearer ${'x'.repeat(8192)}\r\n`), [40101]),
    row('8 KiB of spaces before a token', get(`${HOST}Authorization: Bearer${' '.repeat(8192)}ada\r\n`), [200]),
    row('8 KiB of spaces in place of a token', get(`${HOST}Authorization: Bearer${' '.repeat(8192)}!\r\n`), [40101]),
    row(
      '8 KiB of parameters that do not end',
      post(LENGTH + CLOSE, PLANT).replace('/json', `/json${';a="\\"'.repeat(1600)}`),
      [41500],
      CLOSED,
    ),
  ],
  'request lines': [
    row('HTTP/0.9 without a version', 'GET /plants\r\n\r\n', [40100], CLOSED),
    row('HTTP/0.9 without an empty line', 'GET /plants\r\n', [], WAITING),
    row('HTTP/0.9', request('GET /plants HTTP/0.9'), [200], CLOSED),
    row('HTTP/1.0', request('GET /plants HTTP/1.0', TOKEN), [200], CLOSED),
    row('HTTP/1.0 with keep-alive', request('GET /plants HTTP/1.0', TOKEN + KEEP_ALIVE), [200]),
    row('HTTP/2.0', request('GET /plants HTTP/2.0'), [200], CLOSED),
    row('HTTP/2.0 before a body', request('POST /plants HTTP/2.0', HOST + LENGTH + KEEP_ALIVE), [40100], DISCARDING),
    // RFC 9112 section 2.3
    ...['HTTP/1.2', 'HTTP/3.0', 'HTTP/11', 'HTTP/1', 'HTTP/01.01', 'HTTP/ 1.1', 'http/1.1', ''].map((version) =>
      bad(`the version "${version}"`, request(`GET /plants ${version}`)),
    ),
    bad('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    bad('the hello of TLS', Buffer.from('16030102000100010001fc0303'.padEnd(400, '0'), 'hex')),
    bad('a space before the method', request(' GET /plants HTTP/1.1')),
    bad('tabs in the request line', request('GET\t/plants\tHTTP/1.1')),
    row('two spaces before the target', request('GET  /plants HTTP/1.1'), [200]), // RFC 9112 section 3
    bad('no target', request('GET HTTP/1.1')),
    bad('a bare CR after the request line', get(HOST + TOKEN).replace('\r\n', '\r')), // RFC 9112 section 2.2
    bad('a space in the target', request('GET /plants /1 HTTP/1.1')),
    bad('NUL in the target', request('GET /plants\0 HTTP/1.1')),
    bad('a byte beyond ASCII in the target', request('DELETE /plants/\xff HTTP/1.1')),
    bad('a method that is none', request('BREW /plants HTTP/1.1')),
    bad('a method in lower case', request('get /plants HTTP/1.1')),
    row('empty lines before a request', `\r\n\r\n${get(HOST + TOKEN)}`, [200]),
    bad('a line of spaces before a request', `   \r\n\r\n${get(HOST + TOKEN)}`),
    row('TRACE', request('TRACE /plants HTTP/1.1'), [40500]),
    row('the absolute form', request('GET http://b:80/plants HTTP/1.1'), [200]),
    row('the absolute form without a path', request('GET http://b HTTP/1.1'), [40400]),
    // RFC 9112 section 3.2.4
    ...['OPTIONS', 'GET'].map((method) => row(`${method} *`, request(`${method} * HTTP/1.1`), [40400])),
    row('CONNECT', request('CONNECT b:443 HTTP/1.1'), [], CLOSED),
    bad('a target without a slash', request('GET plants HTTP/1.1')),
    row('dots in the target', request('GET /x/../plants HTTP/1.1'), [40400]),
    row('a backslash in the target', request('GET /x\\..\\plants HTTP/1.1'), [40400]),
    row('CR LF in escapes', request('DELETE /plants/1%0d%0aX:%20a HTTP/1.1'), [40003]),
    row('a fragment in the target', request('GET /plants#1 HTTP/1.1'), [40400]),
  ],
  'other turns of an exchange': [
    row('an upgrade to WebSocket', get(`${HOST + TOKEN}Connection: Upgrade\r\nUpgrade: websocket\r\n`), [200], CLOSED),
    // RFC 9110 section 7.8
    row('an upgrade that Connection does not name', get(`${HOST + TOKEN}Upgrade: websocket\r\n`), [200], CLOSED),
    row('an upgrade in HTTP/1.0', get(`${HOST + TOKEN}Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n`).replace('/1.1', '/1.0'), [200], CLOSED),
    row('an upgrade to HTTP/2, with a body', post(`${LENGTH}Connection: Upgrade\r\nUpgrade: h2c\r\n`, PLANT), [200], {
      ...CLOSED,
      isKept: true,
    }),
    row('Expect: 100-continue', post(LENGTH + CONTINUE, PLANT), [100, 200], { isKept: true }),
    row('the same without a token', request(POST, HOST + LENGTH + CONTINUE), [100, 40100], DISCARDING),
    row('the same in HTTP/1.0', post(LENGTH + CONTINUE, PLANT).replace('/1.1', '/1.0'), [200], { ...CLOSED, isKept: true }),
    row('Expect: the moon', get(`${HOST + TOKEN}Expect: the moon\r\n`), ['node:http 417']),
    // RFC 9110 section 14.2
    kept('a range of a POST', post(`${LENGTH}Range: bytes=0-1\r\n`, PLANT)),
    row('a thousand ranges', get(`${HOST + TOKEN}Range: bytes=${'0-,'.repeat(999)}0-\r\n`), [200]),
    // RFC 9110 section 6.5.1
    row('Authorization in a trailer', withTrailer(HOST + JSON_TYPE, TOKEN), [40100], CLOSED),
    row('Content-Type in a trailer', withTrailer(HOST + TOKEN, JSON_TYPE), [41500], CLOSED),
    kept('a second Authorization in a trailer', postChunks(`${CHUNK}0\r\nAuthorization: Bearer bob\r\n\r\n`)),
    kept('a second Host in a trailer', postChunks(`${CHUNK}0\r\nHost: b\r\n\r\n`)),
    bad('Transfer-Encoding in a trailer', postChunks(`${CHUNK}0\r\n${CHUNKED}\r\n`)),
    bad('Content-Length in a trailer', postChunks(`${CHUNK}0\r\nContent-Length: 5\r\n\r\n`)),
    bad('a trailer of 20,000 bytes', postChunks(`${CHUNK}0\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), 431),
    ...['', ' HTTP/2.0'].map((version) =>
      row(`a request of${version || ' HTTP/0.9'} behind a response that closes the connection`, unfinished(version), ['node:http 400'], CLOSED),
    ),
    row('garbage after the last request', get(HOST + TOKEN + CLOSE) + PLANT, [200], CLOSED),
    row('the end after a whole request', post(LENGTH, PLANT), [200], { ...ENDED, isKept: true }),
    row('the end within the header', get(HOST).slice(0, -2), ['node:http 400'], ENDED),
    row('the end within the body', post(LENGTH, PLANT.slice(0, -1)), ['node:http 400'], ENDED),
    row('the end before the last chunk', postChunks(CHUNK), ['node:http 400'], ENDED),
    row('the end before a request', '', [], ENDED),
  ],
  bodies: [
    row('a gzip bomb', postBody(BOMB, `Content-Encoding: gzip\r\n${CLOSE}`), [41501], CLOSED),
    row(`${DEEP} arrays in one another`, postBody('['.repeat(DEEP)), [40001]),
    row(`${DEEP} objects in one another`, postBody('{"a":'.repeat(DEEP)), [40001]),
    row('deep arrays in a plant', postBody(`{"id":1,"name":"a","x":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`), [40001]),
    row('an id of a million digits', postBody(`{"id":${'9'.repeat(1_000_000)},"name":"a"}`), [40002]),
    row('an id of 0 and a million digits', postBody(`{"id":0.${'9'.repeat(1_000_000)},"name":"a"}`), [40002]),
    row('an exponent of a million digits', postBody(`{"id":1e${'9'.repeat(1_000_000)},"name":"a"}`), [40002]),
    row('a name of a million escapes', postBody(`{"id":1,"name":"${'\\u0000'.repeat(200_000)}"}`), [40002]),
    row('100,000 members', postBody(`{${'"id":1,'.repeat(100_000)}"name":"a"}`), [40002]),
    row('a body over the limit', postBody('a'.repeat(3 * 2 ** 20), CLOSE), [41300], CLOSED),
  ],
}
