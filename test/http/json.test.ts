import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { HttpError } from '../../src/http/errors.ts'
import { parseJson, type JsonValue } from '../../src/http/json.ts'
import { mutate } from '../support/mutate.ts'

/** The expected value of a number literal, calculated with exact fractions. */
function parseExactNumber(literal: string): bigint | number {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(literal) ?? assert.fail(literal)
  const digits = BigInt(`${sign}${integer}${fraction}`)
  if (digits === 0n) return 0n
  const scale = Number(exponent) - fraction.length
  // With larger exponents, no literal in these tests is an int64, and the calculation would take too long.
  if (Math.abs(scale) >= 100_000) return scale < 0 ? NaN : Infinity
  const numerator = digits * 10n ** BigInt(Math.max(0, scale))
  const denominator = 10n ** BigInt(Math.max(0, -scale))
  const value = numerator / denominator
  if (value * denominator !== numerator) return NaN
  return value >= -(2n ** 63n) && value < 2n ** 63n ? value : Infinity
}

/** The strings, numbers and brackets of a JSON text. */
function tokenize(text: string): string[] {
  return text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[[\]{}]/g) ?? []
}

function measureDepth(text: string): number {
  let level = 0
  return tokenize(text).reduce((deepest, token) => {
    if (token === '[' || token === '{') level++
    if (token === ']' || token === '}') level--
    return Math.max(deepest, level)
  }, 0)
}

/** Converts a value to the result of JSON.parse, with 0 for all numbers. Appends the numbers to `numbers`. */
function toParsedValue(value: JsonValue, numbers: (bigint | number)[]): unknown {
  if (typeof value === 'object' && value !== null && 'members' in value) {
    return Object.fromEntries(value.members.map(([name, member]) => [name, toParsedValue(member, numbers)]))
  }
  if (typeof value === 'bigint' || typeof value === 'number') {
    numbers.push(value)
    return 0
  }
  return Array.isArray(value) ? value.map((item: JsonValue) => toParsedValue(item, numbers)) : value
}

function captureOutcome<T>(run: () => T): { value: T } | { error: unknown } {
  try {
    return { value: run() }
  } catch (error) {
    return { error }
  }
}

/** Asserts that the text before the reported byte is valid, although it may be truncated. */
function assertError(error: unknown, bytes: Buffer): void {
  assert(error instanceof HttpError)
  assert.equal(error.error, 40001)
  if (!isUtf8(bytes)) return assert.equal(error.message, 'The body is not UTF-8.')
  const [, problem, digits] =
    /^The body (is empty|ends too early|is not JSON|is nested too deeply): expected .+ at byte (\d+)\.$/.exec(
      error.message,
    ) ?? assert.fail(error.message)
  const offset = Number(digits)
  assert.equal(problem === 'is empty' || problem === 'ends too early', offset === bytes.length)
  const before = captureOutcome(() => parseJson(bytes.subarray(0, offset)))
  if ('error' in before) assert.match((before.error as HttpError).message, /is empty|ends too early/)
}

/** Asserts that parseJson has the same result as JSON.parse, except that integers are exact. */
function assertMatchesJsonParse(bytes: Buffer): void {
  const read = captureOutcome(() => parseJson(bytes))
  const text = bytes.toString().replace(/^\ufeff/, '')
  const parsed = captureOutcome(
    () => JSON.parse(text, (_, value: unknown) => (typeof value === 'number' ? 0 : value)) as unknown,
  )
  if ('error' in read) {
    assertError(read.error, bytes)
    return assert('error' in parsed || !isUtf8(bytes) || measureDepth(text) > 64)
  }
  assert('value' in parsed && isUtf8(bytes) && measureDepth(text) <= 64)
  const numbers: (bigint | number)[] = []
  assert(isDeepStrictEqual(toParsedValue(read.value, numbers), parsed.value))
  const literals = tokenize(text).filter((token) => /^[-\d]/.test(token))
  assert.deepEqual(numbers, literals.map(parseExactNumber))
}

const DOCUMENTS = [
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
]

suite('parseJson returns the same result as JSON.parse', () => {
  const rows: readonly string[] = [
    ...DOCUMENTS,
    '[999999999999999,-999999999999999,1000000000000000,9007199254740993.0,9007199254740993000e-3]',
    '[-0.0,0.0e-5,0e-999999999,0.1e-99999999999999999999,1e99999999999999999999,1e003,1e-400,-1e-400,-1e400]',
    '[0.9223372036854775807e19,-922337203685477580.8e1,9223372036854775806.99999999999999999999,12.34e2,0.001e3]',
    '[899999999999999.99,4503599627370496.5,123456789012345678901234567890,0.30000000000000004]',
    '"\ud7ff\ue000\u{10000}"',
    String.raw`["a\\","ż\nż","\u00e9\u00E9\uabcd\uABCD","\u0000","\ud83c","\udf35\ud83c","\u00411"]`,
    '{"10":1,"9":2,"id":3,"id":4}',
    `[${'[{}],'.repeat(100)}[]]`,
    ...['', '\ufeff', '\ufeff\ufeff1', '\ufffe1', "'a'", 'NaN', '// comment\n1', '\v1', '\u00a01', '+1', '.5', '١'],
    ...['01', '-01', '0x10', '1n', '1.', '1.e1', '1e', '1e-', '1e1.5', '--1', '1\0', 'truefalse', '[1}', '{"a":1]'],
    ...['"\x1f"', '"\\n\t"', '"\\', '"\\ż"', String.raw`"\x41"`, String.raw`"\0"`, String.raw`"\u004`, '"\\u00\x100"'],
    ...['/', ':', '@', 'G', '`', 'g'].map((digit) => String.raw`"\u00${digit}0"`),
    '['.repeat(65) + ']'.repeat(65),
    '{"a":'.repeat(64) + '{}' + '}'.repeat(64),
  ]
  for (const document of rows) {
    // The runner of the mutation tests takes U+2028 and U+2029 for line breaks.
    const name = JSON.stringify(document).replace(/[\u2028\u2029]/g, encodeURIComponent)
    test(name, () => assertMatchesJsonParse(Buffer.from(document)))
  }
})

const million = 1_000_000

suite('parseJson parses a long number', () => {
  const zeros = '0'.repeat(million)
  const nines = '9'.repeat(million)
  const rows: readonly (readonly [expected: bigint | number, ...literals: string[]])[] = [
    [0n, `0e${nines}`, `0.${zeros}`, `0e-${nines}`],
    [1n, `1.${zeros}`, `1${zeros}e-${million}`, `0.${zeros.slice(1)}1e${million}`],
    [NaN, `1e-${nines}`, `1.${zeros}1`, `1${zeros}1e-${million}`],
    [Infinity, nines, `1${zeros}`, `1e${nines}`],
  ]
  for (const [expected, ...literals] of rows) {
    for (const literal of literals) {
      test(`${literal.slice(0, 3)}… with ${literal.length} characters as ${expected}`, () => {
        assert.equal(parseJson(Buffer.from(literal)), expected)
      })
    }
  }
})

suite('parseJson reports the expected token and the byte offset', () => {
  const rows: readonly (readonly [text: string, message: string])[] = [
    ['', 'is empty: expected a value at byte 0.'],
    ['[1,', 'ends too early: expected a value at byte 3.'],
    ['[1,]', 'is not JSON: expected a value at byte 3.'],
    ['{"a":1,}', 'is not JSON: expected a name in double quotes at byte 7.'],
    ['{"a" 1}', 'is not JSON: expected ":" at byte 5.'],
    ['{"a":1 "b":2}', 'is not JSON: expected "," or "}" at byte 7.'],
    ['[1 2]', 'is not JSON: expected "," or "]" at byte 3.'],
    ['"ż', 'ends too early: expected the end of the string at byte 3.'],
    ['"ż\x1f"', 'is not JSON: expected an escape for a control character at byte 3.'],
    [String.raw`"ż\N"`, 'is not JSON: expected a valid escape at byte 3.'],
    [String.raw`"\u004"`, 'is not JSON: expected a valid escape at byte 1.'],
    ['trUe', 'is not JSON: expected true at byte 0.'],
    ['falsy', 'is not JSON: expected false at byte 0.'],
    ['nil', 'is not JSON: expected null at byte 0.'],
    ['-a', 'is not JSON: expected a digit at byte 1.'],
    ['1.-1', 'is not JSON: expected a digit at byte 2.'],
    ['1e+-1', 'is not JSON: expected the end of the body at byte 1.'],
    ['\ufeff[', 'ends too early: expected a value at byte 4.'],
    ['{}}', 'is not JSON: expected the end of the body at byte 2.'],
    ['['.repeat(65), 'is nested too deeply: expected at most 64 levels at byte 64.'],
  ]
  for (const [text, message] of rows) {
    test(JSON.stringify(text), () => {
      assert.throws(() => parseJson(Buffer.from(text)), { status: 400, error: 40001, message: `The body ${message}` })
    })
  }
})

suite('parseJson rejects invalid UTF-8', () => {
  // A stray continuation byte, a truncated character, an overlong "/", a surrogate, U+110000, and UTF-16.
  for (const hex of ['80', 'e282', 'c0af', 'eda080', 'f4908080', 'fffe7b00']) {
    test(hex, () => {
      for (const [before, after] of [
        ['', ''],
        ['{"name":"Żaba 🌵', '"}'],
        ['} ', ''],
      ] as const) {
        assertMatchesJsonParse(Buffer.concat([Buffer.from(before), Buffer.from(hex, 'hex'), Buffer.from(after)]))
      }
    })
  }
})

test('parseJson rejects deeply nested brackets even if the call stack is already deep', () => {
  const bytes = Buffer.from('[{"a":'.repeat(100_000))
  const message = 'The body is nested too deeply: expected at most 64 levels at byte 192.'
  const descend = (frames: number): void => {
    if (frames > 0) descend(frames - 1)
    else assert.throws(() => parseJson(bytes), { message })
  }
  descend(2_000)
})

/** Encodes a string as UTF-8, with one character per byte. */
function toLatin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const CORPUS = DOCUMENTS.map(toLatin1)

const documents = fc.oneof(
  { arbitrary: fc.constantFrom(...CORPUS), weight: 4 },
  { arbitrary: fc.json().map(toLatin1), weight: 1 },
)

const LIMITS = [0n, 1n, 10n ** 15n, 2n ** 53n, 10n ** 18n, 2n ** 63n, 10n ** 19n, 2n ** 64n]

/** Numbers around the int64 limits. The decimal point and the exponent often make the number an integer. */
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

/** Checks many documents, and reports a shrunk counterexample. */
function assertAllMatchJsonParse(documents: fc.Arbitrary<string>, numRuns: number): void {
  const property = fc.property(documents, (document) => assertMatchesJsonParse(Buffer.from(document, 'latin1')))
  // Capturing stack traces would take half of the time.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    fc.assert(property, { numRuns, examples: CORPUS.map((document) => [document]), includeErrorInReport: true })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

test('parseJson returns the same results as JSON.parse for 5,000 mutated documents', () => {
  assertAllMatchJsonParse(mutate(documents, CORPUS), 5_000)
})

test('parseJson parses 10,000 numbers around the int64 limits exactly', () => {
  assertAllMatchJsonParse(numbers, 10_000)
})
