import { mutate, type Random } from './mutation.ts'

const PLANT = '{"id":7,"name":"Monstera \\u00e9\\ud83c\\udf31é🌱","tag":"tropical","x":[{"y":[null,true,-0.5e3]}]}'
const FIELDS = 'Host: 127.0.0.1\r\nAuthorization: Bearer fuzz\r\n'
const JSON_TYPE = 'Content-Type: application/json; charset=utf-8\r\n'
const MANY = 'Host: a\r\nAuthorization: Bearer many\r\n'

const VALID: readonly Buffer[] = [
  postPlant(Buffer.from(PLANT)),
  `POST /plants HTTP/1.1\r\n${FIELDS}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n` +
    '5\r\n{"id"\r\n11;a=b\r\n:-1,"name":"Fern"}\r\n0\r\nX: y\r\n\r\n',
  `POST /plants HTTP/1.1\r\nExpect: 100-continue\r\n${FIELDS}${JSON_TYPE}Content-Length: 20\r\n\r\n` +
    '{"id":-1,"name":"a"}',
  `POST /plants HTTP/1.1\r\nHost: a\r\n${JSON_TYPE}Content-Length: 20\r\n\r\n{"id":-1,"name":"a"}`,
  `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`,
  `GET /plants?limit=2&after=-9223372036854775808 HTTP/1.1\r\n${FIELDS}Accept: */*\r\n\r\n`,
  `GET http://a:80/%70lants?limit=2147483647 HTTP/1.1\r\n${FIELDS}Connection: close\r\n\r\n`,
  `GET /plants HTTP/1.1\r\n${MANY}\r\n`,
  `GET /plants?limit=1500 HTTP/1.1\r\n${MANY}\r\n`,
  `HEAD /plants HTTP/1.1\r\n${FIELDS}\r\n`,
  `DELETE /plants/7 HTTP/1.1\r\n${FIELDS}\r\n`,
  `DELETE /plants/-1 HTTP/1.0\r\nConnection: keep-alive\r\n${FIELDS}\r\n`,
  'OPTIONS /plants/7 HTTP/1.1\r\nHost: a\r\n\r\n',
].map((request) => Buffer.from(request))

/** Makes what a client sends: a valid request, or some, with mutations anywhere or in one part alone. */
export function makeBytes(random: Random): Buffer {
  switch (random(4)) {
    case 0:
      // Node refuses most of what is mutated anywhere; this goes deeper.
      return postPlant(mutate(Buffer.from(PLANT), random, VALID))
    case 1:
      return withTarget(mutate(Buffer.from('DELETE /plants/7'), random, VALID))
    case 2:
      return withTarget(mutate(Buffer.from('GET /plants?limit=2&after=-5'), random, VALID))
    default:
      return mutate(VALID[random(VALID.length)]!, random, VALID)
  }
}

function postPlant(body: Buffer): Buffer {
  const header = `POST /plants HTTP/1.1\r\n${FIELDS}${JSON_TYPE}Content-Length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(header), body])
}

function withTarget(line: Buffer): Buffer {
  const [method, ...target] = line.toString('latin1').split(' ')
  const encoded = target.join('+').replace(/[^\x21-\x7e]/g, encodeURIComponent)
  return Buffer.from(`${method} ${encoded} HTTP/1.1\r\n${FIELDS}\r\n`, 'latin1')
}
