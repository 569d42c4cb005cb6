import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { JsonObject, readJson, type JsonValue } from '../../src/http/json.ts'
import { MAX_INT64, MIN_INT64 } from '../../src/plants/int64.ts'
import { cpuTime } from '../support/cpu-time.ts'

function read(text: string): JsonValue {
  return readJson(Buffer.from(text))
}

/** The value as JSON with its members in order, and each bigint with an n at its end. */
function textOf(value: JsonValue): string {
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`
  if (!(value instanceof JsonObject)) return JSON.stringify(value)
  const members: string[] = []
  for (let member = value.first; member !== undefined; member = member.next) {
    members.push(`${JSON.stringify(member.name)}:${textOf(member.value)}`)
  }
  return `{${members.join()}}`
}

function refuses(bytes: Uint8Array, message: string): void {
  assert.throws(() => readJson(bytes), { status: 400, error: 40001, message })
}

suite('reads a number as a bigint if it is whole and in the int64 range', () => {
  const asTheyStand = '7 -42 999999999999999 -999999999999999 1000000000000000 9007199254740993 -9007199254740993'
  const zeros = '0'.repeat(1_000_000)
  const rows: [value: bigint, ...literals: string[]][] = [
    ...asTheyStand.split(' ').map((literal): [bigint, string] => [BigInt(literal), literal]),
    [0n, '0', '-0', '0.0', '-0.0', '0.0e-5', '0e999999999', '0e-999999999', `0e${'9'.repeat(1_000_000)}`],
    [1n, '1.0', '1e-0', '100e-2', '0.001e3', `1.${zeros}`, `1${zeros}e-1000000`, `0.${zeros.slice(1)}1e1000000`],
    [-1n, '-1.0'],
    [15n, '1.50e1'],
    [1000n, '1e3', '1E3', '1e+3', '1e003'],
    [1234n, '12.34e2'],
    [-2500n, '-25e2'],
    [10n ** 18n, '1e18'],
    [2n ** 53n + 1n, '9007199254740993.0', '9007199254740993000e-3'],
    [MAX_INT64, '9223372036854775807', '9223372036854775807.000', '0.9223372036854775807e19'],
    [MAX_INT64, '9223372036854775807000e-3'],
    [MIN_INT64, '-9223372036854775808', '-922337203685477580.8e1'],
  ]
  for (const [value, ...literals] of rows) {
    for (const literal of literals) {
      test(literal.length < 40 ? literal : `${literal.slice(0, 20)}… of ${literal.length} characters`, () => {
        assert.equal(read(literal), value)
      })
    }
  }
})

suite('reads every other number as JSON.parse does', () => {
  const literals = [
    ...'0.5 -0.5 1.25e1 1e-1 5e-324 1e-400 -1e-400 1e400 -1e400 9007199254740993.5 4503599627370496.5'.split(' '),
    ...'0.30000000000000004 9223372036854775808 -9223372036854775809 9223372036854775807.5'.split(' '),
    ...'9223372036854775806.99999999999999999999 0.9223372036854775808e19 1e19 10000000000000000000'.split(' '),
    ...'99999999999999999999 123456789012345678901234567890 0.1e-99999999999999999999 1e99999999999999999999'.split(
      ' ',
    ),
    '9'.repeat(1_000_000),
    `1${'0'.repeat(1_000_000)}`,
    `1${'0'.repeat(1_000_000)}1e-1000000`,
    `1.${'0'.repeat(1_000_000)}1`,
    `1e${'9'.repeat(1_000_000)}`,
    `1e-${'9'.repeat(1_000_000)}`,
  ]
  for (const literal of literals) {
    test(literal.length < 50 ? literal : `${literal.slice(0, 20)}… of ${literal.length} characters`, () => {
      assert.equal(read(literal), JSON.parse(literal))
    })
  }
})

suite('reads a number of a million digits in the time of a few JSON.parse', () => {
  const million = 1_000_000
  const rows: [name: string, literal: string][] = [
    ['digits', '7'.repeat(million)],
    ['fraction', `7.${'7'.repeat(million)}`],
    ['zeros between ones', `1${'0'.repeat(million)}1e-${million}`],
    ['ones between zeros', `${'10'.repeat(million / 2)}e-3`],
  ]
  for (const [name, literal] of rows) {
    const bytes = Buffer.from(literal)
    test(name, async () => {
      const reader = await cpuTime(() => readJson(bytes))
      const parser = await cpuTime(() => JSON.parse(bytes.toString()) as unknown)
      // A bigint of a million digits alone takes 100 times what JSON.parse takes.
      assert(reader < 50 * parser + 10_000, `${reader} µs, JSON.parse ${parser} µs`)
    })
  }
})

suite('reads strings', () => {
  const rows: [name: string, text: string, value: string][] = [
    ['empty', '""', ''],
    ['ASCII', '"Monstera deliciosa"', 'Monstera deliciosa'],
    ['DEL, which is no control character here', '"\x7f"', '\x7f'],
    ['two bytes a character', '"Żółta paproć"', 'Żółta paproć'],
    ['three bytes a character', '"日本の楓"', '日本の楓'],
    ['four bytes a character', '"🌵"', '🌵'],
    [
      'the first and last of each length',
      '"\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}"',
      '\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}',
    ],
    ['U+2028 and U+2029', '"\u2028\u2029"', '\u2028\u2029'],
    ['U+FFFD and U+FEFF', '"\ufffd\ufeff"', '\ufffd\ufeff'],
    ['every short escape', String.raw`"\"\\\/\b\f\n\r\t"`, '"\\/\b\f\n\r\t'],
    ['an escape between characters', String.raw`"a\"b"`, 'a"b'],
    ['an escape after characters beyond ASCII', String.raw`"ż\nż"`, 'ż\nż'],
    ['a backslash before the quote', String.raw`"a\\"`, 'a\\'],
    ['hexadecimal digits of both cases', String.raw`"\u00e9\u00E9\uabcd\uABCD"`, 'éé\uabcd\uabcd'],
    ['an escaped NUL', String.raw`"\u0000"`, '\0'],
    ['an escaped surrogate pair', String.raw`"\ud83c\udf35"`, '🌵'],
    ['a lone high surrogate', String.raw`"\ud83c"`, '\ud83c'],
    ['a lone low surrogate', String.raw`"\udf35x"`, '\udf35x'],
    ['surrogates in the wrong order', String.raw`"\udf35\ud83c"`, '\udf35\ud83c'],
    ['more digits than four', String.raw`"\u00411"`, 'A1'],
  ]
  for (const [name, text, value] of rows) {
    test(name, () => assert.equal(read(text), value))
  }

  test('of 100,000 escapes', () => {
    assert.equal(read(`"${'\\n'.repeat(100_000)}"`), '\n'.repeat(100_000))
  })
})

suite('reads values', () => {
  const asTheyStand = ['null', 'true', 'false', '"text"', '[]', '{}']
  const rows: [text: string, value: string][] = [
    ...asTheyStand.map((text): [string, string] => [text, text]),
    ['[ ]', '[]'],
    ['{ }', '{}'],
    ['[1,"a",null,[true],0.5]', '[1n,"a",null,[true],0.5]'],
    ['{"a":1}', '{"a":1n}'],
    ['{"b":1,"a":{"c":[]}}', '{"b":1n,"a":{"c":[]}}'],
    ['{"10":1,"9":2}', '{"10":1n,"9":2n}'],
    ['{"id":1,"id":2}', '{"id":1n,"id":2n}'],
    [String.raw`{"id":1,"\u0069d":2}`, '{"id":1n,"id":2n}'],
    ['{"":0,"ż":1}', '{"":0n,"ż":1n}'],
    ['{"__proto__":{"id":1},"constructor":2,"toString":3}', '{"__proto__":{"id":1n},"constructor":2n,"toString":3n}'],
    [['', '{', '"a"', ':', '[', '1', ',', '2', ']', '}', ''].join(' \t\r\n'), '{"a":[1n,2n]}'],
    ['\ufeff7', '7n'],
    ['\ufeff {"a":"ż"}', '{"a":"ż"}'],
  ]
  for (const [text, value] of rows) {
    test(JSON.stringify(text), () => assert.equal(textOf(read(text)), value))
  }

  test('from a part of a larger buffer', () => {
    const larger = new TextEncoder().encode('xx{"name":"Żaba"}xx')
    const part = new Uint8Array(larger.buffer, 2, larger.length - 4)
    assert.equal(textOf(readJson(part)), '{"name":"Żaba"}')
  })
})

suite('says what was expected, and at which byte', () => {
  const rows: [problem: string, expected: string, at: number, ...texts: string[]][] = [
    ['is empty', 'a value', 0, ''],
    ['ends too early', 'a value', 3, '\ufeff', '[1,'],
    ['ends too early', 'a value', 2, ' \n'],
    ['ends too early', 'a name in double quotes', 1, '{'],
    ['ends too early', '":"', 4, '{"a"'],
    ['ends too early', 'a value', 5, '{"a":'],
    ['ends too early', '"," or "}"', 6, '{"a":1'],
    ['ends too early', 'a name in double quotes', 7, '{"a":1,'],
    ['ends too early', 'a value', 1, '['],
    ['ends too early', '"," or "]"', 2, '[1'],
    ['ends too early', 'the end of the string', 1, '"'],
    ['ends too early', 'the end of the string', 3, '"ż', String.raw`"\"`],
    ['ends too early', 'one of "\\/bfnrtu', 2, '"\\'],
    ['ends too early', 'a hexadecimal digit', 6, String.raw`"\u004`],
    ['ends too early', 'true', 3, 'tru'],
    ['ends too early', 'a digit', 1, '-'],
    ['ends too early', 'a digit', 2, '1.', '1e'],
    ['ends too early', 'a digit', 3, '1e-'],
    ['is not JSON', 'a value', 3, '\ufeff\ufeff1', '[1,]'],
    ['is not JSON', 'a value', 0, '\ufffe1', 'undefined', "'a'", 'NaN', 'Infinity', 'True', '// comment\n1', '\v1'],
    ['is not JSON', 'a value', 0, '\f1', '\u00a01', ']', '+1', '.5', '١'],
    ['is not JSON', 'true', 2, 'trUe'],
    ['is not JSON', 'false', 4, 'falsy'],
    ['is not JSON', 'null', 1, 'nil'],
    ['is not JSON', 'the end of the body', 4, 'truefalse', '"ż",'],
    ['is not JSON', 'the end of the body', 2, '1 2', '{}}', '1 /* comment */', '-01'],
    ['is not JSON', 'the end of the body', 1, '1\0', '1\x01', '01', '0x10', '1_000', '1n'],
    ['is not JSON', 'a value', 1, '[,1]'],
    ['is not JSON', '"," or "]"', 3, '[1 2]'],
    ['is not JSON', '"," or "]"', 2, '[1}', '[00]'],
    ['is not JSON', 'a name in double quotes', 1, '{,}', '{a:1}', '{1:1}'],
    ['is not JSON', '":"', 5, '{"a" 1}'],
    ['is not JSON', '":"', 4, '{"a"}'],
    ['is not JSON', 'a value', 5, '{"a":}'],
    ['is not JSON', 'a name in double quotes', 7, '{"a":1,}'],
    ['is not JSON', '"," or "}"', 7, '{"a":1 "b":2}'],
    ['is not JSON', '"," or "}"', 6, '{"a":1]'],
    ['is not JSON', 'an escape for a control character', 1, '"\0"'],
    ['is not JSON', 'an escape for a control character', 2, '"a\nb"'],
    ['is not JSON', 'an escape for a control character', 3, '"ż\x1f"', '"\\n\t"'],
    ['is not JSON', 'one of "\\/bfnrtu', 2, String.raw`"\x41"`, String.raw`"\N"`, String.raw`"\0"`],
    ['is not JSON', 'one of "\\/bfnrtu', 2, String.raw`"\U0041"`, '"\\ż"'],
    ['is not JSON', 'a hexadecimal digit', 3, String.raw`"\u"`],
    ['is not JSON', 'a hexadecimal digit', 6, String.raw`"\u004"`],
    ['is not JSON', 'a hexadecimal digit', 5, String.raw`"\u00/0"`, String.raw`"\u00:0"`, String.raw`"\u00@0"`],
    ['is not JSON', 'a hexadecimal digit', 5, String.raw`"\u00G0"`, String.raw`"\u00g0"`, '"\\u00\x100"'],
    ['is not JSON', 'a digit', 1, '--1', '-a'],
    ['is not JSON', 'a digit', 2, '1.e1', '1.-1', '1ee1'],
    ['is not JSON', 'the end of the body', 3, '1.2.3', '1e1.5'],
    ['is not JSON', 'a digit', 3, '1e+-1'],
  ]
  for (const [problem, expected, at, ...texts] of rows) {
    for (const text of texts) {
      test(JSON.stringify(text), () => {
        assert.throws(() => void JSON.parse(text), SyntaxError)
        refuses(Buffer.from(text), `The body ${problem}: expected ${expected} at byte ${at}.`)
      })
    }
  }
})

suite('refuses what is not UTF-8, and says where it begins', () => {
  const rows: [name: string, ...sequences: string[]][] = [
    ['a continuation byte alone', '80', 'bf'],
    ['one continuation byte too many', 'c5bcbc'],
    ['a character cut short', 'c5', 'e2', 'e282', 'f0', 'f09f', 'f09f8c'],
    ['U+FFFD cut short', 'ef', 'efbf'],
    ['an overlong "/"', 'c0af', 'e080af', 'f08080af'],
    ['an overlong form of the last character of each length', 'c1bf', 'e09fbf', 'f08fbfbf'],
    ['the first high surrogate, the last low one, and a pair', 'eda080', 'edbfbf', 'eda0bcedbcb5'],
    ['U+110000, and a lead byte beyond', 'f4908080', 'f5808080'],
    ['a sequence of five bytes, and of six', 'f888808080', 'fc8480808080'],
    ['a byte that UTF-8 does not have', 'fe', 'ff'],
    ['UTF-16', 'fffe7b00'],
    ['Latin-1', 'e974e9'],
  ]
  for (const [name, hex] of rows.flatMap(([name, ...sequences]) => sequences.map((hex) => [name, hex] as const))) {
    // A character too many is the one that is ill-formed, not the character before it.
    const at = hex === 'c5bcbc' ? 2 : 0
    const wellFormed = Buffer.from('{"name":"Żaba \ufffd 🌵')
    for (const [where, before, after] of [
      ['as a whole', Buffer.alloc(0), ''],
      ['in a string after well-formed characters', wellFormed, '"}'],
      ['alone in a string', Buffer.from('"'), '"'],
      ['at the end of a string that is cut short', Buffer.from('"a'), ''],
      ['after a syntax error', Buffer.from('} '), ''],
    ] as const) {
      test(`${name}, ${where}: ${hex}`, () => {
        const message = `The body is not UTF-8: expected a well-formed character at byte ${before.length + at}.`
        refuses(Buffer.concat([before, Buffer.from(hex, 'hex'), Buffer.from(after)]), message)
      })
    }
  }
})

suite('takes 64 levels of arrays and objects', () => {
  const message = (offset: number): string =>
    `The body is nested too deeply: expected at most 64 levels at byte ${offset}.`

  test('64 arrays are read', () => {
    const text = '['.repeat(64) + ']'.repeat(64)
    assert.equal(textOf(read(text)), text)
  })

  test('64 objects are read', () => {
    const text = '{"a":'.repeat(63) + '{}' + '}'.repeat(63)
    assert.equal(textOf(read(text)), text)
  })

  test('a level that was left does not count', () => {
    const text = `[${Array.from({ length: 100 }, () => '[{}]').join()}]`
    assert.equal((read(text) as readonly JsonValue[]).length, 100)
  })

  test('65 arrays are refused', () => {
    refuses(Buffer.from('['.repeat(65) + ']'.repeat(65)), message(64))
  })

  test('65 objects are refused', () => {
    refuses(Buffer.from('{"a":'.repeat(64) + '{}' + '}'.repeat(64)), message(320))
  })

  test('100,000 brackets are refused, deep in a stack too', () => {
    const bytes = Buffer.from('[{"a":'.repeat(100_000))
    const descend = (frames: number): void => {
      if (frames > 0) descend(frames - 1)
      else refuses(bytes, message(192))
    }
    descend(2_000)
  })
})
