import fc from 'fast-check'
import { mutate } from '../../support/mutate.ts'

const HOST = 'Host: 127.0.0.1\r\n'
const FIELDS = `${HOST}Authorization: Bearer ada\r\n`
const MANY_FIELDS = `${HOST}Authorization: Bearer many\r\n`
const JSON_TYPE = 'Content-Type: application/json; charset=utf-8\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const KEEP_ALIVE = 'Connection: keep-alive\r\n'
const CLOSE = 'Connection: close\r\n'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: h2c\r\n'

const PLANT = '{"id":1,"name":"Monstera \\u00e9\\ud83c\\udf31é🌱","tag":"tropical","x":[{"y":[null,true,-0.5e3]}]}'

function plant(id: number): string {
  return `{"id":${id},"name":"plant ${id}"}`
}

/** Creates a request with Content-Length. */
function withBody(line: string, fields: string, body: string): string {
  return `${line} HTTP/1.1\r\n${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** Creates a request with a chunked body. */
function withChunkedBody(line: string, fields: string, body: string): string {
  const chunks = [body.slice(0, 5), body.slice(5)].map((text) => `${text.length.toString(16)};a=b\r\n${text}\r\n`)
  return `${line}\r\n${fields}${CHUNKED}\r\n${chunks.join('')}0\r\nX: y\r\n\r\n`
}

/** Requests that read or change the client's plants. */
const VALID_REQUESTS: readonly ((id: number) => string)[] = [
  (id) => withBody('POST /plants', FIELDS + JSON_TYPE, plant(id)),
  (id) => withBody('POST http://a:80/%70lants', FIELDS + JSON_TYPE, plant(id)),
  (id) => withBody('POST /plants', FIELDS + JSON_TYPE + CLOSE, plant(id)),
  (id) => withBody('POST /plants', `Expect: 100-continue\r\n${FIELDS}${JSON_TYPE}`, plant(id)),
  (id) => withBody('POST /plants', FIELDS + JSON_TYPE + UPGRADE, plant(id)),
  (id) => withChunkedBody('POST /plants HTTP/1.1', FIELDS + JSON_TYPE, plant(id)),
  (id) => withChunkedBody('POST /plants HTTP/1.0', FIELDS + JSON_TYPE + KEEP_ALIVE, plant(id)),
  (id) => `DELETE /plants/${id} HTTP/1.1\r\n${FIELDS}\r\n`,
  (id) => `DELETE /plants/${id} HTTP/1.1\r\n${FIELDS}${CLOSE}\r\n`,
  (id) => `DELETE /plants/${id} HTTP/1.0\r\n${KEEP_ALIVE}${FIELDS}\r\n`,
  (id) => `DELETE /plants/${id} HTTP/1.0\r\n${FIELDS}\r\n`,
  (id) => `DELETE /plants/${id} HTTP/2.0\r\n${FIELDS}\r\n`,
  (id) => `DELETE /plants/${id}\r\n${FIELDS}\r\n`,
  (id) => withBody('GET /plants', FIELDS, 'hello').replace(' HTTP/1.1', id % 2 === 0 ? ' HTTP/2.0' : ''),
  (id) => `\r\n\r\nDELETE /plants/${id} HTTP/1.1\r\n${FIELDS}\r\n`,
  (id) => withBody(`DELETE /plants/${id}`, FIELDS, 'hello'),
  (id) => `GET /plants?limit=2&after=${id} HTTP/1.1\r\n${FIELDS}Accept: */*\r\n\r\n`,
  () => `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`,
  (id) => `GET /plants?include=id&limit=${id} HTTP/1.1\r\n${FIELDS}\r\n`,
  () => `GET http://a:80/%70lants?limit=2147483647 HTTP/1.1\r\n${FIELDS}${UPGRADE}\r\n`,
  () => withBody('GET /plants', FIELDS, 'hello'),
  () => `HEAD /plants HTTP/1.1\r\n${FIELDS}\r\n`,
  () => `GET /plants HTTP/1.1\r\n${MANY_FIELDS}\r\n`,
  () => `GET /plants?limit=1500&include=id HTTP/1.1\r\n${MANY_FIELDS}\r\n`,
]

/** Requests that are rejected, some of which close the connection. */
const REJECTED_REQUESTS: readonly ((id: number) => string)[] = [
  (id) => withBody('POST /plants', HOST + JSON_TYPE, plant(id)),
  (id) => withBody('POST /plants', `Expect: 100-continue\r\n${HOST}${JSON_TYPE}`, plant(id)),
  (id) => withChunkedBody('POST /plants HTTP/1.1', `${HOST}Authorization: Bearer other\r\n${JSON_TYPE}`, plant(id)),
  (id) => withBody('POST /plants', FIELDS.replace(HOST, '') + JSON_TYPE, plant(id)),
  (id) => `DELETE /plants/${id} HTTP/1.1\r\n${FIELDS.replace(HOST, '')}\r\n`,
  (id) => withBody('POST /plants', FIELDS + HOST + JSON_TYPE, plant(id)),
  (id) => withBody('POST /plants', `Expect: x\r\n${FIELDS}${JSON_TYPE}`, plant(id)),
  (id) => `DELETE /plants/${id} HTTP/1.1\r\nExpect: x\r\n${FIELDS}\r\n`,
  (id) => withBody('POST /plants', FIELDS, plant(id)),
  (id) => withBody('POST /plants', `${FIELDS}${JSON_TYPE}Content-Encoding: gzip\r\n`, plant(id)),
  (id) => withBody('POST /plants', FIELDS + JSON_TYPE, plant(id).padEnd(12_000)),
  (id) => withChunkedBody('POST /plants HTTP/1.1', FIELDS + JSON_TYPE, plant(id).padEnd(12_000)),
  (id) => withChunkedBody('POST /plants HTTP/1.1', `${FIELDS}${JSON_TYPE}Transfer-Encoding: gzip\r\n`, plant(id)),
  (id) => `DELETE /plants/${id} HTTP/1.1\r\n${FIELDS}${CHUNKED}\r\nno length\r\n`,
  (id) => `POST /plants HTTP/1.1\r\n${FIELDS}${JSON_TYPE}${CHUNKED}\r\n19\r\n${plant(id)}\r\nno length\r\n`,
  () => `GET /plants?limit=1500 HTTP/1.1\r\n${MANY_FIELDS}${CHUNKED}\r\nno length\r\n`,
  (id) => withBody('PUT /plants', FIELDS + JSON_TYPE, plant(id)),
  (id) => withBody(`POST /plants/${id}`, FIELDS + JSON_TYPE, plant(id)),
  (id) => withBody('POST /nothing', FIELDS + JSON_TYPE, plant(id)),
  (id) => withBody('OPTIONS /plants', HOST, plant(id)),
  (id) => `DELETE /plants/0${id} HTTP/1.1\r\n${FIELDS}\r\n`,
  (id) => `DELETE /plants/${id}%zz HTTP/1.1\r\n${FIELDS}\r\n`,
  (id) => `OPTIONS /plants/${id} HTTP/1.1\r\n${HOST}\r\n`,
  (id) => `GET /plants?include=id&include=${id} HTTP/1.1\r\n${FIELDS}\r\n`,
  (id) => `GET /plants?limit=0${id} HTTP/1.1\r\n${FIELDS}\r\n`,
  () => `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`,
  () => `TRACE /plants HTTP/1.1\r\n${FIELDS}\r\n`,
  () => `CONNECT a:443 HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /plants HTTP/1.1\r\n${FIELDS}${'a:\r\n'.repeat(998)}\r\n`,
  () => `HEAD /nothing HTTP/1.1\r\n${HOST}\r\n`,
]

/** Requests for the standalone server's own endpoints. A plain server responds with 404. */
const PROGRAM_REQUESTS: readonly ((id: number) => string)[] = [
  () => `GET /livez HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET http://a/livez?x=y HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /readyz HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /readyz HTTP/1.1\r\n${HOST}${CLOSE}\r\n`,
  () => `GET /openapi.json HTTP/1.1\r\n${HOST}\r\n`,
  () => `HEAD /openapi.json HTTP/1.0\r\n${KEEP_ALIVE}\r\n`,
  () => `OPTIONS /livez HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /livez HTTP/1.1\r\n\r\n`,
  () => `GET /livez HTTP/1.1\r\nExpect: x\r\n${HOST}\r\n`,
  (id) => withBody('POST /livez', FIELDS + JSON_TYPE, plant(id)),
  (id) => withChunkedBody('POST /readyz HTTP/1.1', `${FIELDS}${JSON_TYPE}Transfer-Encoding: gzip\r\n`, plant(id)),
]

const REQUEST_GROUPS = [
  VALID_REQUESTS,
  VALID_REQUESTS,
  VALID_REQUESTS,
  REJECTED_REQUESTS,
  REJECTED_REQUESTS,
  PROGRAM_REQUESTS,
]

/** Returns the UTF-8 bytes of a text as a Latin-1 string. */
function toLatin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const ALL_REQUESTS = REQUEST_GROUPS.flat().map((make) => toLatin1(make(1)))

const ids = fc.integer({ min: 1, max: 4 })

const validRequest = fc
  .tuple(
    fc.constantFrom(...REQUEST_GROUPS).chain((group) => fc.constantFrom(...group)),
    ids,
  )
  .map(([make, id]) => toLatin1(make(id)))

const bodies = mutate(fc.constant(toLatin1(PLANT)), ALL_REQUESTS)
const deletes = mutate(
  ids.map((id) => `DELETE /plants/${id}`),
  ALL_REQUESTS,
)
const lists = mutate(fc.constant('GET /plants?limit=2&after=-5&include=id'), ALL_REQUESTS)

/** Mostly valid requests. */
export const requests: fc.Arbitrary<string> = fc.oneof(
  { weight: 12, arbitrary: validRequest },
  // Node itself rejects most requests with mutations anywhere, so these mutate only what the service parses.
  bodies.map((body) => `POST /plants HTTP/1.1\r\n${FIELDS}${JSON_TYPE}Content-Length: ${body.length}\r\n\r\n${body}`),
  deletes.map(withTarget),
  lists.map(withTarget),
  mutate(validRequest, ALL_REQUESTS),
)

function withTarget(line: string): string {
  const [method, ...target] = line.split(' ')
  const encoded = target.join('+').replace(/[^\x21-\x7e]/g, encodeURIComponent)
  return `${method} ${encoded} HTTP/1.1\r\n${FIELDS}\r\n`
}
