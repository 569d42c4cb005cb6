import type { Random } from '../random.ts'

/** What the grammars of HTTP, JSON and the parameters turn on. */
const TOKENS: readonly string[] = [
  ...['\r\n', '\n', '\r', '\0', ' ', '\t', ':', '\r\n\r\n'],
  ...['\x7f', '\xff', '\xc3\xa9', '\xc0\x80', '\xed\xa0\x80', '\xef\xbb\xbf'],
  ...['GET ', 'HEAD ', 'POST ', 'DELETE ', 'OPTIONS ', 'PUT ', 'CONNECT ', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ...[' HTTP/1.0', ' HTTP/1.1', ' HTTP/2.0', 'http://b', '/plants', '/plants/', '//', '/..'],
  ...['%2F', '%00', '%zz', '%', '?', '&', '=', '#'],
  ...['limit=', 'after=', 'limit=1&limit=2', 'limit=2147483648', 'after=-9223372036854775808'],
  ...['Host: b\r\n', 'X: y\r\n z\r\n', 'a:\r\n'.repeat(1000)],
  ...['Connection: close\r\n', 'Connection: keep-alive\r\n', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'],
  ...['Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Content-Length: 99999999\r\n'],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip, chunked\r\n', 'Content-Encoding: gzip\r\n'],
  ...['Content-Type: text/plain\r\n', 'Expect: 100-continue\r\n', 'Expect: it\r\n'],
  ...['Authorization: Bearer fuzz-owner\r\n', 'Authorization: Basic Zjpm\r\n', 'Bearer '],
  ...['0\r\n\r\n', '5\r\n', 'ffffffffffffffff\r\n', '5;a=b\r\n', '-1\r\n'],
  ...['{', '}', '[', ']', '"', ',', '\\', '\\u0000', '\\ud800', '\\u0069d', 'null', 'true'],
  ...['"id":', '"name":', '"tag":', '"__proto__":'],
  ...['9223372036854775807', '9223372036854775808', '9007199254740993', '1e999', '1e3', '-0', '0.5', '01'],
  ...['1'.repeat(5000), '['.repeat(100), '"'.repeat(100), ' '.repeat(5000)],
]

type Mutation = (bytes: Buffer, random: Random, others: readonly Buffer[]) => Buffer

const MUTATIONS: readonly Mutation[] = [
  function flipBit(bytes, random) {
    const at = random(bytes.length)
    return splice(bytes, at, at + 1, Buffer.of(bytes[at]! ^ (1 << random(8))))
  },
  function setByte(bytes, random) {
    const at = random(bytes.length)
    return splice(bytes, at, at + 1, Buffer.of(random(256)))
  },
  function insertBytes(bytes, random) {
    const at = random(bytes.length + 1)
    return splice(bytes, at, at, Buffer.from(Array.from({ length: 1 + random(8) }, () => random(256))))
  },
  function insertToken(bytes, random) {
    const at = random(bytes.length + 1)
    return splice(bytes, at, at, token(random))
  },
  function insertField(bytes, random) {
    const at = bytes.indexOf('\r\n') + 2
    return splice(bytes, at, at, token(random))
  },
  function replaceByToken(bytes, random) {
    return splice(bytes, ...range(bytes, random), token(random))
  },
  function replaceNumber(bytes, random) {
    const numbers = [...bytes.toString('latin1').matchAll(/[0-9]+/g)]
    const number = numbers[random(numbers.length)]
    if (number === undefined) return bytes
    const other = String(random(2 ** 32) - random(2 ** 32))
    return splice(bytes, number.index, number.index + number[0].length, Buffer.from(other))
  },
  function removeRange(bytes, random) {
    return splice(bytes, ...range(bytes, random), Buffer.of())
  },
  function repeatRange(bytes, random) {
    const [start, end] = range(bytes, random)
    const times = random(8) === 0 ? 1000 : 1
    return splice(bytes, end, end, Buffer.alloc((end - start) * times, bytes.subarray(start, end)))
  },
  function moveRange(bytes, random) {
    const [start, end] = range(bytes, random)
    const without = splice(bytes, start, end, Buffer.of())
    const at = random(without.length + 1)
    return splice(without, at, at, bytes.subarray(start, end))
  },
  function cutShort(bytes, random) {
    return bytes.subarray(0, random(bytes.length + 1))
  },
  function goOnAsAnother(bytes, random, others) {
    const other = others[random(others.length)]!
    return Buffer.concat([bytes.subarray(0, random(bytes.length + 1)), other.subarray(random(other.length))])
  },
  function followByAnother(bytes, random, others) {
    return Buffer.concat([bytes, others[random(others.length)]!])
  },
]

/** Changes bytes in a few places, or, once in a while, in none. */
export function mutate(bytes: Buffer, random: Random, others: readonly Buffer[]): Buffer {
  let mutated = bytes
  for (let i = random(5); i > 0 && mutated.length > 0; i--) {
    mutated = MUTATIONS[random(MUTATIONS.length)]!(mutated, random, others)
  }
  return mutated
}

function splice(bytes: Buffer, start: number, end: number, insert: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, start), insert, bytes.subarray(end)])
}

function range(bytes: Buffer, random: Random): [start: number, end: number] {
  const start = random(bytes.length)
  return [start, start + 1 + random(Math.min(64, bytes.length - start))]
}

function token(random: Random): Buffer {
  return Buffer.from(TOKENS[random(TOKENS.length)]!, 'latin1')
}
