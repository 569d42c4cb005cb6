import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { getPort, servePlants } from '../support/service.ts'

const HOST = 'Host: a\r\n'
const TOKEN = 'Authorization: Bearer ada\r\n'
const ORIGIN = 'http://a.example'
const PREFLIGHT = `${HOST}Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\n`
const JSON_TYPE = 'Content-Type: application/json\r\n'

/** Builds a request of 16 kB, or with a body of 64 KiB, from a prefix, a repeated fragment and an end. */
type BuildRequest = (prefix: string, fragment: string, end?: string) => string

function repeatToLength(length: number, begin: string, piece: string, end: string): string {
  return begin + piece.repeat((length - begin.length - end.length) / piece.length) + end
}

function buildWithTarget(method: string, fields = HOST + TOKEN): BuildRequest {
  return (begin, piece, end = '') =>
    repeatToLength(16_000, `${method} ${begin}`, piece, `${end} HTTP/1.1\r\n${fields}\r\n`)
}

function buildWithField(line: string, others = HOST + TOKEN): BuildRequest {
  return (begin, piece, end = '') =>
    repeatToLength(16_000, `${line} HTTP/1.1\r\n${others}${begin}`, piece, `${end}\r\n\r\n`)
}

const buildWithBody: BuildRequest = (begin, piece, end = '') => {
  const text = repeatToLength(65_536, begin, piece, end)
  return `POST /plants HTTP/1.1\r\n${HOST}${TOKEN}${JSON_TYPE}Content-Length: ${text.length}\r\n\r\n${text}`
}

type RequestTexts = readonly Readonly<Parameters<BuildRequest>>[]

// prettier-ignore
const PATHS: RequestTexts = [
  ['/', 'a'], ['', '/'], ['/', '%'], ['', '/%41'], ['', '/%2f'], ['', '/%zz'], ['/', '%41'], ['/p', '%6c'], ['/', '%2f', '/plants'],
  ['/plants', '/'], ['/plants/', '%41a'], ['/plants/', '%C3%A9'], ['/plants/', '%E0%A4'], ['/plants/', '%'], ['/plants/', '9'],
  ['/plants/', '9', '%'], ['/plants/1', '/'], ['/plants', '%2f'], ['/%70lants/', '%31'], ['', '/%70lants'], ['/', '%6civez'],
  ['http://', 'a'], ['http://', 'a', '/plants'], ['http://a', '/%41'], ['a', 'a', '://a/%70lants/1'], ['a://', 'a:'], ['/?', '%41'],
]

// prettier-ignore
const REQUEST_KINDS: readonly (readonly [name: string, make: BuildRequest, texts: RequestTexts])[] = [
  ['a path in a GET', buildWithTarget('GET'), PATHS],
  ['a path in a DELETE', buildWithTarget('DELETE'), PATHS],
  ['a preflight', buildWithTarget('OPTIONS', PREFLIGHT), PATHS],
  ['a query', buildWithTarget('GET'), [
    ['/plants?', '&'], ['/plants?', '='], ['/plants?', '%'], ['/plants?', '%&'], ['/plants?', '%zz&'], ['/plants?', '%6c&'],
    ['/plants?', '%61=b&'], ['/plants?', 'limit=1&'], ['/plants?', 'after=1&'], ['/plants?', 'limit&after&'], ['/plants?', 'limi&'],
    ['/plants?', '%6cimi&'], ['/plants?', '%6c%69%6d%69%74&'], ['/plants?limit=', '1'], ['/plants?limit=', '%31'],
    ['/plants?after=', '9'], ['/plants?after=-', '0'], ['/plants?after=', '%'], ['/plants?', 'limit=%&'], ['/plants?', '?limit=1'],
    ['/plants?', '%E0&'], ['/plants?', '%C3%A9&'], ['/plants?', 'limit=%E0&'], ['/plants?', '=%E0&'], ['/plants?', 'a&'],
  ]],
  ['credentials', buildWithField('GET /plants', HOST), [
    ['Authorization: Bearer', ' '], ['Authorization: Bearer', ' ', '!'], ['Authorization: Bearer ', 'a'],
    ['Authorization: Bearer ', 'a', '!'], ['Authorization: Bearer ', '=', '!'], ['Authorization: Bearer a', '=', '!'],
    ['Authorization: Bearer ', 'a='], ['Authorization: Bearer', ' a'], ['Authorization: ', 'Bearer '], ['Authorization: ', '.'],
  ]],
  ['a Host', buildWithField('GET /plants', TOKEN), [
    ['Host: ', 'a'], ['Host: ', 'a', '/'], ['Host: ', '%41'], ['Host: ', '%41', '%'], ['Host: ', ':'], ['Host: a:', '1', 'x'],
    ['Host: ', 'a:'], ['Host: [', ':'], ['Host: [', '1', ']x'], ['Host: ', '['], ['Host: ', '[]'],
  ]],
  ['another field', buildWithField('GET /plants'), [
    ['X-Request-Id: ', 'a'], ['Origin: ', 'a'], ['Origin: ', `${ORIGIN} `], ['Cookie: ', 'a=b; '], ['Cookie: ', ';'],
    ['Connection: ', 'a'], ['Connection: ', ','], ['Connection: ', 'close,'], ['Connection: ', 'upgrade,'], ['Upgrade: ', 'a'],
    ['Connection: upgrade\r\nUpgrade: ', 'a'], ['Expect: ', '1'], ['Expect: ', '100-continue,'], ['Expect: ', '100-continu'],
    ['Transfer-Encoding: ', 'a'], ['Transfer-Encoding: ', 'chunked,'], ['Transfer-Encoding: ', ',', 'chunked'],
    ['Content-Length: ', '0'], ['Content-Length: ', '9'], ['', 'a', ': b'], ['no field', ' a'], ['X-Request-Id: a', ' ', 'b\r\nno field'],
    ['Origin: a', ' ', 'b\r\nno field'],
  ]],
  ['a Content-Type', buildWithField('POST /plants', `${HOST}${TOKEN}Content-Length: 0\r\nContent-Type: application/json`), [
    ['', ' ', 'x'], [';', ' ', 'x'], ['', ' ;', 'x'], ['', ';'], [';', 'a'], [';', 'a', '='], [';a=', 'a'], [';a=', 'a', ' x'],
    [';a="', 'a'], [';a="', '\\'], [';a="', '\\"'], [';a="', '\\a', '"'], ['', ';a="\\"'], ['', ';a="'], ['', ';a=""'],
    ['', ';a=b'], ['', ' ;a=b', 'x'], ['', ';charset=utf8'], [';charset="', '\\u', '"'], ['', ';charset="\\u\\t\\f8"'],
  ]],
  ['a Content-Encoding', buildWithField('POST /plants', `${HOST}${TOKEN}${JSON_TYPE}Content-Length: 0\r\nContent-Encoding: `), [
    [',', ' ', 'x'], [',', '\t ', 'x'], ['identity', ' ', 'x'], [',', ' ', 'identity'], ['', ','], ['', ', ', 'x'],
    ['', 'identity,', 'x'], ['', ' identity ,', 'x'], ['', 'identity'],
  ]],
  ['a body', buildWithBody, [
    ['', ' '], ['', '['], ['[', '[],', '[]]'], ['', '{"":'], ['{', '"id":1,', '"id":1}'], ['{', '"":0,', '"":0}'],
    ['{', '"name":"","tag":"","id":1,', '"id":1}'], ['{', '"\\u0069d":1,', '"id":1}'], ['{"', '\\u0061', '":1}'],
    ['{"id":', '9', '}'], ['{"id":-0.', '0', '}'], ['{"id":0.', '0', '1}'], ['{"id":1e', '9', '}'], ['{"id":1', '0', 'e-65000}'],
    ['{"id":', '0', '}'], ['{"id":1', '0', '1e-65000}'], ['[', '1,', '1]'], ['[', '1e1,', '1]'], ['{"":[', '1e1,', '1]}'], ['[', '1e9,', '1]'], ['[', '1e99,', '1]'],
    ['[', '1.0,', '1]'], ['[', '0.0,', '1]'], ['[', '9223372036854775808,', '1]'], ['"', '\\u0000', '"'], ['"', '\\ud800', '"'],
    ['"', '\\n', '"'], ['"', 'a'], ['"', '\\'], ['"', '\x80'], ['"', '\xff'], ['"', '\xc3\xa9', '"'], ['"', '\xc3\xa9', '\xff"'],
    ['"', '\xc3\xa9\\n', '"'], ['[', '"\xc3\xa9",', '1]'], ['"', '\xef\xbf\xbd', '\xff"'], ['', '\xef\xbb\xbf'],
    ['{"id":1,"name":"', '\xc3\xa9\\n', '"}'], ['{"id":1,"name":"', '\\ud83c\\udf31', '"}'], ['{"id":1,"name":"', '\\ud83c', '"}'],
  ]],
]

/**
 * Creates a function that sends a request, and resolves with whether the server keeps the connection open. Reuses the
 * connection as long as it is open.
 */
function createSender(port: number, request: string): () => Promise<boolean> {
  const bytes = Buffer.from(request, 'latin1')
  let socket = connect(port, '127.0.0.1')
  return async () => {
    if (socket.destroyed) socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    const [response] = (await once(socket, 'data')) as [Buffer]
    const isKept = !response.includes('\r\nConnection: close\r\n')
    if (!isKept) socket.destroy()
    return isKept
  }
}

/** Measures the CPU time of ten requests, including that of the client, in microseconds. */
async function measureCost(send: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  for (let n = 0; n < 10; n++) await send()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

test('no request uses much more CPU time than a baseline request of the same size', async (t) => {
  const port = getPort(await servePlants(t))

  async function createWarmSender(request: string): Promise<() => Promise<boolean>> {
    const send = createSender(port, request)
    // Warm up, so that V8 has compiled the code that all requests need.
    for (let n = 0; n < 300; n++) await send()
    return send
  }
  const field = buildWithField('GET /plants')
  const kept = await createWarmSender(field('X-Unread: ', 'a'))
  const closed = await createWarmSender(field('Connection: close\r\nX-Unread: ', 'a'))
  // The parser has a shortcut for short integers, but not for numbers with an exponent.
  const read = await createWarmSender(buildWithBody('{"id":1,"name":"","unread":[', '1e1,', '1]}'))

  for (const [name, make, texts] of REQUEST_KINDS) {
    for (const text of texts) {
      await t.test(`limits the CPU time of ${name}: ${JSON.stringify(text)}`, async () => {
        const send = createSender(port, make(...text))
        const isKept = await send()
        // A query of thousands of parameters takes ten times as long as a header field; quadratic costs are far higher.
        const factor = { 'a body': 2, 'a query': 20 }[name] ?? 5
        const baseline = make === buildWithBody ? read : isKept ? kept : closed
        // Other load on the machine slows both down, but unevenly, so that the fastest attempts count.
        let [cost, limit] = [Infinity, Infinity]
        for (let tries = 0; tries < 5 || (tries < 50 && cost >= limit); tries++) {
          limit = Math.min(limit, factor * (await measureCost(baseline)))
          cost = Math.min(cost, await measureCost(send))
        }
        assert.ok(cost < limit, `ten requests took ${cost} µs; the limit is ${limit} µs`)
      })
    }
  }
})
