import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { test } from 'node:test'
import { HttpError } from '../../../src/http/errors.ts'
import { readJson } from '../../../src/http/json/reader.ts'
import { JsonObject, type JsonValue } from '../../../src/http/json/value.ts'
import { createRandom } from '../../support/random.ts'

/** JSON_FUZZ_SEED repeats a run. */
const SEED = Number(process.env['JSON_FUZZ_SEED'] ?? Date.now() % 2 ** 32)

/** What the reader must make of a number, by exact fractions. */
function exactNumber(literal: string): bigint | number {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(literal) ?? assert.fail(literal)
  const digits = BigInt(`${sign}${integer}${fraction}`)
  if (digits === 0n) return 0n
  const scale = Number(exponent) - fraction.length
  // Further out the literals here are never whole numbers in range, and would take too long.
  if (Math.abs(scale) < 1_000) {
    const numerator = digits * 10n ** BigInt(Math.max(0, scale))
    const denominator = 10n ** BigInt(Math.max(0, -scale))
    const value = numerator / denominator
    if (value * denominator === numerator && value >= -(2n ** 63n) && value < 2n ** 63n) return value
  }
  return Number(literal)
}

/** The strings, numbers and brackets of a JSON text. */
function tokens(text: string): string[] {
  return text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[[\]{}]/g) ?? []
}

function depth(text: string): number {
  let level = 0
  return tokens(text).reduce((deepest, token) => {
    if (token === '[' || token === '{') level++
    if (token === ']' || token === '}') level--
    return Math.max(deepest, level)
  }, 0)
}

/** The value as JSON.parse gives it, but for negative zero; its numbers go to `numbers` as they are. */
function asParsed(value: JsonValue, numbers: (bigint | number)[]): unknown {
  if (value instanceof JsonObject) {
    const entries: [string, unknown][] = []
    for (let member = value.first; member !== undefined; member = member.next) {
      entries.push([member.name, asParsed(member.value, numbers)])
    }
    return Object.fromEntries(entries)
  }
  if (typeof value === 'bigint' || typeof value === 'number') {
    numbers.push(value)
    return Number(value)
  }
  return Array.isArray(value) ? value.map((item: JsonValue) => asParsed(item, numbers)) : value
}

/** Deep equality that holds 0 and -0 for the same, and is quick enough for a hundred thousand documents. */
function same(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const [entries, others] = [Object.entries(a), Object.entries(b)]
  return (
    Array.isArray(a) === Array.isArray(b) &&
    entries.length === others.length &&
    entries.every(([name, value], i) => name === others[i]?.[0] && same(value, others[i][1]))
  )
}

function outcome<T>(run: () => T): { value: T } | { error: unknown } {
  try {
    return { value: run() }
  } catch (error) {
    return { error }
  }
}

/** Asserts that an error says what is wrong, and that it is there. */
function assertError(error: unknown, bytes: Buffer): void {
  assert(error instanceof HttpError)
  const [, problem, digits] =
    /^The body (is not UTF-8|is empty|ends too early|is not JSON|is nested too deeply): .+ at byte (\d+)\.$/.exec(
      error.message,
    ) ?? assert.fail(error.message)
  const offset = Number(digits)

  assert.equal(problem === 'is not UTF-8', !isUtf8(bytes))
  if (problem === 'is not UTF-8') {
    assert(isUtf8(bytes.subarray(0, offset)))
    for (let length = 1; length <= 4; length++) assert(!isUtf8(bytes.subarray(offset, offset + length)))
    return
  }
  assert.equal(problem === 'is empty' || problem === 'ends too early', offset === bytes.length)
  // Nothing is wrong with the part before, other than that it may be cut short.
  const before = outcome(() => readJson(bytes.subarray(0, offset)))
  if ('error' in before) assert.match(String(before.error), /is empty|ends too early/)
}

/** Asserts that the reader does with these bytes what JSON.parse does, and reads whole numbers exactly. */
function assertReadAsParsed(bytes: Buffer): void {
  const read = outcome(() => readJson(bytes))
  if (!isUtf8(bytes)) {
    assert('error' in read)
    assertError(read.error, bytes)
    return
  }
  const text = bytes.toString().replace(/^\ufeff/, '')
  const parsed = outcome(() => JSON.parse(text) as unknown)
  if ('error' in read) {
    assertError(read.error, bytes)
    assert('error' in parsed || depth(text) > 64)
    return
  }
  assert('value' in parsed && depth(text) <= 64)
  const numbers: (bigint | number)[] = []
  assert(same(asParsed(read.value, numbers), parsed.value))
  assert.deepEqual(
    numbers,
    tokens(text)
      .filter((token) => /^[-\d]/.test(token))
      .map(exactNumber),
  )
}

function check(bytes: Buffer): void {
  try {
    assertReadAsParsed(bytes)
  } catch (cause) {
    throw new Error(`JSON_FUZZ_SEED=${SEED}, bytes ${bytes.toString('hex')}: ${bytes.toString()}`, { cause })
  }
}

const CORPUS = [
  '{"id":123456789,"name":"Monstera deliciosa","tag":"tropical"}',
  '{"id":9007199254740993,"name":"Żółta paproć \\u007a\\n","tag":"日本の楓 🌵"}',
  String.raw`{"\u0069d":-1.50e1,"id":9223372036854775807,"name":"\"\\\/\b\f\n\r\t\ud83c\udf35\udf35"}`,
  '{"__proto__":{"a":[1,2.5,-3e-7]},"constructor":null,"10":true,"9":false,"":{}}',
  ' \t\r\n[ 0 , -0 , 0.0 , 1E+3 , 100e-2 , 12e400 , 5e-324 , 1e999999 ] \t\r\n',
  '[[],[[]],{},{"a":{}},[{"b":[null,true,false,"",0]}]]',
  '\ufeff{"name":"\ufeff\ufffd\uffff\u{10ffff}\u0080\u07ff\u0800"}',
  '"\u007f\u2028\u2029"',
  '-9223372036854775808',
  '9223372036854775807.000e0',
  '[9007199254740992,9007199254740993.5,922337203685477580800e-2,18446744073709551616]',
  'true',
  'null',
  `${'['.repeat(64)}${']'.repeat(64)}`,
  `${'{"a":['.repeat(31)}1${']}'.repeat(31)}`,
].map((text) => Buffer.from(text))

/** Well-formed pieces in the wrong place, and pieces that nearly are. */
const PIECES = [
  ...Array.from('{}[]:,"\\/ \t\n\r-+.eEutfn0123456789aF\0\x1f\x7f'),
  '\\u',
  '\\ud83c',
  '\\"',
  '""',
  '"id":',
  'true',
  'false',
  'null',
  '[]',
  '{}',
  '00',
  '-0',
  'e1',
  '.5',
  'E-1',
  '\ufeff',
  'ż',
  '楓',
  '🌵',
  '\ufffd',
  '\u00a0',
  '[[[[',
  '{"a":',
  '0000000000',
  '9223372036854775808',
  'NaN',
  // Ill-formed UTF-8.
  ...['80', 'bf', 'c0af', 'c5', 'e282', 'eda080', 'efbf', 'f490', 'ff'].map((hex) => Buffer.from(hex, 'hex')),
].map((piece) => Buffer.from(piece))

test('takes, refuses and reads 100,000 mutated documents as JSON.parse does', (t) => {
  // A stack for each error takes half of the time.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  t.after(() => {
    Error.stackTraceLimit = stackTraceLimit
  })

  const random = createRandom(SEED)
  const pick = (from: readonly Buffer[]): Buffer => from[random(from.length)] ?? assert.fail()
  const mutate = (bytes: Buffer): Buffer => {
    const start = random(bytes.length + 1)
    const end = Math.min(bytes.length, start + random(6))
    const [before, part, after] = [bytes.subarray(0, start), bytes.subarray(start, end), bytes.subarray(end)]
    switch (random(7)) {
      case 0:
        return Buffer.concat([before, after])
      case 1:
        return before
      case 2:
        return Buffer.concat([before, part, part, after])
      case 3:
        return Buffer.concat([before, Buffer.from([random(256)]), after])
      case 4:
        return Buffer.concat([before, pick(PIECES), after])
      case 5:
        return Buffer.concat([before, pick(CORPUS), after])
      default:
        return Buffer.concat([before, pick(PIECES), part, after])
    }
  }
  for (const document of CORPUS) check(document)
  for (let i = 0; i < 100_000; i++) {
    let document = pick(CORPUS)
    for (let mutations = 1 + random(3); mutations > 0; mutations--) document = mutate(document)
    check(document)
  }
})

test('reads 20,000 numbers about the limits of int64, written in many ways, exactly', () => {
  const random = createRandom(SEED)
  const limits = [0n, 1n, 10n ** 15n, 2n ** 53n, 10n ** 18n, 2n ** 63n, 10n ** 19n, 2n ** 64n]
  for (let i = 0; i < 20_000; i++) {
    const integer = (limits[random(limits.length)] ?? assert.fail()) + BigInt(random(5)) - 2n
    const zeros = '0'.repeat(random(4))
    const sign = integer < 0n || random(2) === 0 ? '-' : ''
    const digits = String(integer).replace('-', '') + zeros
    const point = random(digits.length + 1)
    const shift = random(3) === 0 ? random(5) - 2 : digits.length - zeros.length - point
    const fraction = digits.slice(point) + (random(8) === 0 ? '0001' : '')
    const mantissa = (digits.slice(0, point).replace(/^0+/, '') || '0') + (fraction && `.${fraction}`)
    check(Buffer.from(`${sign}${mantissa}${shift === 0 ? '' : `${random(2) === 0 ? 'e' : 'E'}${shift}`}`))
  }
})
