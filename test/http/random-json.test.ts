import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { HttpError } from '../../src/http/errors.ts'
import { JsonObject, readJson, type JsonValue } from '../../src/http/json.ts'
import { mutate } from '../support/fuzz/mutation.ts'

/** What the reader must make of a number, by exact fractions. */
function exactNumber(literal: string): bigint | number {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(literal) ?? assert.fail(literal)
  const digits = BigInt(`${sign}${integer}${fraction}`)
  if (digits === 0n) return 0n
  const scale = Number(exponent) - fraction.length
  // Further out the literals here are never whole numbers in range, and would take too long.
  if (Math.abs(scale) < 100_000) {
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
    return Number(value) + 0
  }
  return Array.isArray(value) ? value.map((item: JsonValue) => asParsed(item, numbers)) : value
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
  if ('error' in before) assert.match((before.error as HttpError).message, /is empty|ends too early/)
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
  const parsed = outcome(() => JSON.parse(text, (_, value: unknown) => (value === 0 ? 0 : value)) as unknown)
  if ('error' in read) {
    assertError(read.error, bytes)
    assert('error' in parsed || depth(text) > 64)
    return
  }
  assert('value' in parsed && depth(text) <= 64)
  const numbers: (bigint | number)[] = []
  assert(isDeepStrictEqual(asParsed(read.value, numbers), parsed.value))
  assert.deepEqual(
    numbers,
    tokens(text)
      .filter((token) => /^[-\d]/.test(token))
      .map(exactNumber),
  )
}

/** The bytes of a text in UTF-8, a character for each. */
function onWire(text: string): string {
  return Buffer.from(text).toString('latin1')
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
].map(onWire)

const documents = fc.oneof(
  { arbitrary: fc.constantFrom(...CORPUS), weight: 4 },
  { arbitrary: fc.json().map(onWire), weight: 1 },
)

const LIMITS = [0n, 1n, 10n ** 15n, 2n ** 53n, 10n ** 18n, 2n ** 63n, 10n ** 19n, 2n ** 64n]

/** Numbers about the limits of int64, whose point and exponent are often such that the number is whole. */
const numbers = fc
  .record({
    limit: fc.constantFrom(...LIMITS),
    offset: fc.integer({ min: -2, max: 2 }),
    isNegative: fc.boolean(),
    zeros: fc.nat(3),
    cut: fc.nat(30),
    shift: fc.oneof(fc.constant(undefined), fc.integer({ min: -2, max: 2 })),
    end: fc.constantFrom('', '', '', '0001'),
    e: fc.constantFrom('e', 'E', 'e+'),
  })
  .map(({ limit, offset, isNegative, zeros, cut, shift, end, e }) => {
    const integer = limit + BigInt(offset)
    const digits = String(integer).replace('-', '') + '0'.repeat(zeros)
    const point = cut % (digits.length + 1)
    const whole = digits.slice(0, point).replace(/^0+/, '') || '0'
    const fraction = digits.slice(point) + end
    const exponent = shift ?? digits.length - zeros - point
    const sign = integer < 0n || isNegative ? '-' : ''
    const power = exponent === 0 ? '' : `${exponent < 0 ? 'e' : e}${exponent}`
    return `${sign}${whole}${fraction && `.${fraction}`}${power}`
  })

/** Tries so many documents, and shows one that fails shrunk. */
function assertReadsAll(documents: fc.Arbitrary<string>, numRuns: number): void {
  const property = fc.property(documents, (document) => assertReadAsParsed(Buffer.from(document, 'latin1')))
  // A stack for each error takes half of the time.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    fc.assert(property, { numRuns, examples: CORPUS.map((document) => [document]), includeErrorInReport: true })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

test('takes, refuses and reads 50,000 mutated documents as JSON.parse does', () => {
  assertReadsAll(mutate(documents, CORPUS), 50_000)
})

test('reads 20,000 numbers about the limits of int64, written in many ways, exactly', () => {
  assertReadsAll(numbers, 20_000)
})
