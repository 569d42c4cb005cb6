import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { HttpError } from '../../../src/http/errors.ts'
import { readJson } from '../../../src/http/json/reader.ts'
import { JsonObject, type JsonValue } from '../../../src/http/json/value.ts'

function read(text: string): JsonValue {
  return readJson(Buffer.from(text))
}

/** The value with each object as `{ members: [[name, value], …] }`, which assert can compare and print. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonObject) {
    const members: unknown[] = []
    for (let member = value.first; member !== undefined; member = member.next) {
      members.push([member.name, plain(member.value)])
    }
    return { members }
  }
  return Array.isArray(value) ? value.map(plain) : value
}

function refuses(bytes: Uint8Array, message: string): void {
  assert.throws(
    () => readJson(bytes),
    (error) => {
      assert(error instanceof HttpError)
      assert.deepEqual([error.status, error.error, error.message], [400, 40001, message])
      return true
    },
  )
}

/** CPU time in microseconds, the least of several runs. */
function cpuTime(run: () => unknown): number {
  const times = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    return user + system
  })
  return Math.min(...times)
}

suite('reads a number as a bigint if it is whole and in the int64 range', () => {
  const rows: [literal: string, value: bigint][] = [
    ['0', 0n],
    ['-0', 0n],
    ['7', 7n],
    ['-42', -42n],
    ['999999999999999', 999999999999999n],
    ['-999999999999999', -999999999999999n],
    ['1000000000000000', 1000000000000000n],
    ['9007199254740993', 9007199254740993n],
    ['-9007199254740993', -9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['1.0', 1n],
    ['-1.0', -1n],
    ['0.0', 0n],
    ['-0.0', 0n],
    ['0.0e-5', 0n],
    ['0e999999999', 0n],
    ['0e-999999999', 0n],
    ['1e3', 1000n],
    ['1E3', 1000n],
    ['1e+3', 1000n],
    ['1e-0', 1n],
    ['1e003', 1000n],
    ['-25e2', -2500n],
    ['100e-2', 1n],
    ['1.50e1', 15n],
    ['0.001e3', 1n],
    ['12.34e2', 1234n],
    ['9007199254740993.0', 9007199254740993n],
    ['9007199254740993000e-3', 9007199254740993n],
    ['9223372036854775807.000', 9223372036854775807n],
    ['0.9223372036854775807e19', 9223372036854775807n],
    ['-922337203685477580.8e1', -9223372036854775808n],
    ['9223372036854775807000e-3', 9223372036854775807n],
    ['1e18', 1000000000000000000n],
    [`1.${'0'.repeat(1_000_000)}`, 1n],
    [`1${'0'.repeat(1_000_000)}e-1000000`, 1n],
    [`0.${'0'.repeat(999_999)}1e1000000`, 1n],
    [`0e${'9'.repeat(1_000_000)}`, 0n],
  ]
  for (const [literal, value] of rows) {
    test(literal.length < 40 ? literal : `${literal.slice(0, 20)}… of ${literal.length} characters`, () => {
      assert.equal(read(literal), value)
    })
  }
})

suite('reads every other number as JSON.parse does', () => {
  const literals = [
    '0.5',
    '-0.5',
    '1.25e1',
    '1e-1',
    '5e-324',
    '1e-400',
    '-1e-400',
    '1e400',
    '-1e400',
    '9007199254740993.5',
    '4503599627370496.5',
    '0.30000000000000004',
    '9223372036854775808',
    '-9223372036854775809',
    '9223372036854775807.5',
    '9223372036854775806.99999999999999999999',
    '0.9223372036854775808e19',
    '1e19',
    '10000000000000000000',
    '99999999999999999999',
    '123456789012345678901234567890',
    '0.1e-99999999999999999999',
    '1e99999999999999999999',
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
    test(name, () => {
      const reader = cpuTime(() => readJson(bytes))
      const parser = cpuTime(() => JSON.parse(bytes.toString()) as unknown)
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
  const rows: [text: string, value: unknown][] = [
    ['null', null],
    ['true', true],
    ['false', false],
    ['"text"', 'text'],
    ['[]', []],
    ['[ ]', []],
    ['[1,"a",null,[true],0.5]', [1n, 'a', null, [true], 0.5]],
    ['{}', { members: [] }],
    ['{ }', { members: [] }],
    ['{"a":1}', { members: [['a', 1n]] }],
    [
      '{"b":1,"a":{"c":[]}}',
      {
        members: [
          ['b', 1n],
          ['a', { members: [['c', []]] }],
        ],
      },
    ],
    [
      '{"10":1,"9":2}',
      {
        members: [
          ['10', 1n],
          ['9', 2n],
        ],
      },
    ],
    [
      '{"id":1,"id":2}',
      {
        members: [
          ['id', 1n],
          ['id', 2n],
        ],
      },
    ],
    [
      String.raw`{"id":1,"\u0069d":2}`,
      {
        members: [
          ['id', 1n],
          ['id', 2n],
        ],
      },
    ],
    [
      '{"":0,"ż":1}',
      {
        members: [
          ['', 0n],
          ['ż', 1n],
        ],
      },
    ],
    [
      '{"__proto__":{"id":1},"constructor":2,"toString":3}',
      {
        members: [
          ['__proto__', { members: [['id', 1n]] }],
          ['constructor', 2n],
          ['toString', 3n],
        ],
      },
    ],
    [['', '{', '"a"', ':', '[', '1', ',', '2', ']', '}', ''].join(' \t\r\n'), { members: [['a', [1n, 2n]]] }],
    ['\ufeff7', 7n],
    ['\ufeff {"a":"ż"}', { members: [['a', 'ż']] }],
  ]
  for (const [text, value] of rows) {
    test(JSON.stringify(text), () => assert.deepEqual(plain(read(text)), value))
  }

  test('from a part of a larger buffer', () => {
    const larger = new TextEncoder().encode('xx{"name":"Żaba"}xx')
    const part = new Uint8Array(larger.buffer, 2, larger.length - 4)
    assert.deepEqual(plain(readJson(part)), { members: [['name', 'Żaba']] })
  })
})

suite('says what was expected, and at which byte', () => {
  const rows: [text: string, message: string][] = [
    // Empty, or at an end too early
    ['', 'The body is empty: expected a value at byte 0.'],
    ['\ufeff', 'The body ends too early: expected a value at byte 3.'],
    [' \n', 'The body ends too early: expected a value at byte 2.'],
    ['{', 'The body ends too early: expected a name in double quotes at byte 1.'],
    ['{"a"', 'The body ends too early: expected ":" at byte 4.'],
    ['{"a":', 'The body ends too early: expected a value at byte 5.'],
    ['{"a":1', 'The body ends too early: expected "," or "}" at byte 6.'],
    ['{"a":1,', 'The body ends too early: expected a name in double quotes at byte 7.'],
    ['[', 'The body ends too early: expected a value at byte 1.'],
    ['[1', 'The body ends too early: expected "," or "]" at byte 2.'],
    ['[1,', 'The body ends too early: expected a value at byte 3.'],
    ['"', 'The body ends too early: expected the end of the string at byte 1.'],
    ['"ż', 'The body ends too early: expected the end of the string at byte 3.'],
    [String.raw`"\"`, 'The body ends too early: expected the end of the string at byte 3.'],
    ['"\\', String.raw`The body ends too early: expected one of "\/bfnrtu at byte 2.`],
    [String.raw`"\u004`, 'The body ends too early: expected a hexadecimal digit at byte 6.'],
    ['tru', 'The body ends too early: expected true at byte 3.'],
    ['-', 'The body ends too early: expected a digit at byte 1.'],
    ['1.', 'The body ends too early: expected a digit at byte 2.'],
    ['1e', 'The body ends too early: expected a digit at byte 2.'],
    ['1e-', 'The body ends too early: expected a digit at byte 3.'],

    // Values
    ['\ufeff\ufeff1', 'The body is not JSON: expected a value at byte 3.'],
    ['\ufffe1', 'The body is not JSON: expected a value at byte 0.'],
    ['undefined', 'The body is not JSON: expected a value at byte 0.'],
    ["'a'", 'The body is not JSON: expected a value at byte 0.'],
    ['NaN', 'The body is not JSON: expected a value at byte 0.'],
    ['Infinity', 'The body is not JSON: expected a value at byte 0.'],
    ['True', 'The body is not JSON: expected a value at byte 0.'],
    ['trUe', 'The body is not JSON: expected true at byte 2.'],
    ['falsy', 'The body is not JSON: expected false at byte 4.'],
    ['nil', 'The body is not JSON: expected null at byte 1.'],
    ['truefalse', 'The body is not JSON: expected the end of the body at byte 4.'],
    ['1 2', 'The body is not JSON: expected the end of the body at byte 2.'],
    ['{}}', 'The body is not JSON: expected the end of the body at byte 2.'],
    ['// comment\n1', 'The body is not JSON: expected a value at byte 0.'],
    ['1 /* comment */', 'The body is not JSON: expected the end of the body at byte 2.'],
    ['1\0', 'The body is not JSON: expected the end of the body at byte 1.'],
    ['1\x01', 'The body is not JSON: expected the end of the body at byte 1.'],
    ['\v1', 'The body is not JSON: expected a value at byte 0.'],
    ['\f1', 'The body is not JSON: expected a value at byte 0.'],
    ['\u00a01', 'The body is not JSON: expected a value at byte 0.'],
    ['"ż",', 'The body is not JSON: expected the end of the body at byte 4.'],

    // Arrays and objects
    [']', 'The body is not JSON: expected a value at byte 0.'],
    ['[,1]', 'The body is not JSON: expected a value at byte 1.'],
    ['[1,]', 'The body is not JSON: expected a value at byte 3.'],
    ['[1 2]', 'The body is not JSON: expected "," or "]" at byte 3.'],
    ['[1}', 'The body is not JSON: expected "," or "]" at byte 2.'],
    ['{,}', 'The body is not JSON: expected a name in double quotes at byte 1.'],
    ['{a:1}', 'The body is not JSON: expected a name in double quotes at byte 1.'],
    ['{1:1}', 'The body is not JSON: expected a name in double quotes at byte 1.'],
    ['{"a" 1}', 'The body is not JSON: expected ":" at byte 5.'],
    ['{"a"}', 'The body is not JSON: expected ":" at byte 4.'],
    ['{"a":}', 'The body is not JSON: expected a value at byte 5.'],
    ['{"a":1,}', 'The body is not JSON: expected a name in double quotes at byte 7.'],
    ['{"a":1 "b":2}', 'The body is not JSON: expected "," or "}" at byte 7.'],
    ['{"a":1]', 'The body is not JSON: expected "," or "}" at byte 6.'],

    // Strings
    ['"\0"', 'The body is not JSON: expected an escape for a control character at byte 1.'],
    ['"a\nb"', 'The body is not JSON: expected an escape for a control character at byte 2.'],
    ['"ż\x1f"', 'The body is not JSON: expected an escape for a control character at byte 3.'],
    ['"\\n\t"', 'The body is not JSON: expected an escape for a control character at byte 3.'],
    [String.raw`"\x41"`, String.raw`The body is not JSON: expected one of "\/bfnrtu at byte 2.`],
    [String.raw`"\N"`, String.raw`The body is not JSON: expected one of "\/bfnrtu at byte 2.`],
    [String.raw`"\0"`, String.raw`The body is not JSON: expected one of "\/bfnrtu at byte 2.`],
    [String.raw`"\U0041"`, String.raw`The body is not JSON: expected one of "\/bfnrtu at byte 2.`],
    ['"\\ż"', String.raw`The body is not JSON: expected one of "\/bfnrtu at byte 2.`],
    [String.raw`"\u"`, 'The body is not JSON: expected a hexadecimal digit at byte 3.'],
    [String.raw`"\u004"`, 'The body is not JSON: expected a hexadecimal digit at byte 6.'],
    [String.raw`"\u00/0"`, 'The body is not JSON: expected a hexadecimal digit at byte 5.'],
    [String.raw`"\u00:0"`, 'The body is not JSON: expected a hexadecimal digit at byte 5.'],
    [String.raw`"\u00@0"`, 'The body is not JSON: expected a hexadecimal digit at byte 5.'],
    [String.raw`"\u00G0"`, 'The body is not JSON: expected a hexadecimal digit at byte 5.'],
    [String.raw`"\u00g0"`, 'The body is not JSON: expected a hexadecimal digit at byte 5.'],
    ['"\\u00\x100"', 'The body is not JSON: expected a hexadecimal digit at byte 5.'],

    // Numbers
    ['+1', 'The body is not JSON: expected a value at byte 0.'],
    ['.5', 'The body is not JSON: expected a value at byte 0.'],
    ['--1', 'The body is not JSON: expected a digit at byte 1.'],
    ['-a', 'The body is not JSON: expected a digit at byte 1.'],
    ['01', 'The body is not JSON: expected the end of the body at byte 1.'],
    ['-01', 'The body is not JSON: expected the end of the body at byte 2.'],
    ['[00]', 'The body is not JSON: expected "," or "]" at byte 2.'],
    ['1.e1', 'The body is not JSON: expected a digit at byte 2.'],
    ['1.-1', 'The body is not JSON: expected a digit at byte 2.'],
    ['1.2.3', 'The body is not JSON: expected the end of the body at byte 3.'],
    ['1ee1', 'The body is not JSON: expected a digit at byte 2.'],
    ['1e+-1', 'The body is not JSON: expected a digit at byte 3.'],
    ['1e1.5', 'The body is not JSON: expected the end of the body at byte 3.'],
    ['0x10', 'The body is not JSON: expected the end of the body at byte 1.'],
    ['1_000', 'The body is not JSON: expected the end of the body at byte 1.'],
    ['1n', 'The body is not JSON: expected the end of the body at byte 1.'],
    ['١', 'The body is not JSON: expected a value at byte 0.'],
  ]
  for (const [text, message] of rows) {
    test(JSON.stringify(text), () => {
      assert.throws(() => void JSON.parse(text), SyntaxError)
      refuses(Buffer.from(text), message)
    })
  }
})

suite('refuses what is not UTF-8, and says where it begins', () => {
  const rows: [name: string, bytes: number[]][] = [
    ['a continuation byte alone', [0x80]],
    ['the last continuation byte alone', [0xbf]],
    ['one continuation byte too many', [0xc5, 0xbc, 0xbc]],
    ['two bytes cut short', [0xc5]],
    ['three bytes cut short after one', [0xe2]],
    ['three bytes cut short after two', [0xe2, 0x82]],
    ['four bytes cut short after one', [0xf0]],
    ['four bytes cut short after two', [0xf0, 0x9f]],
    ['four bytes cut short after three', [0xf0, 0x9f, 0x8c]],
    ['U+FFFD cut short after one', [0xef]],
    ['U+FFFD cut short after two', [0xef, 0xbf]],
    ['overlong "/" in two bytes', [0xc0, 0xaf]],
    ['overlong U+007F', [0xc1, 0xbf]],
    ['overlong "/" in three bytes', [0xe0, 0x80, 0xaf]],
    ['overlong U+07FF', [0xe0, 0x9f, 0xbf]],
    ['overlong "/" in four bytes', [0xf0, 0x80, 0x80, 0xaf]],
    ['overlong U+FFFF', [0xf0, 0x8f, 0xbf, 0xbf]],
    ['the first high surrogate', [0xed, 0xa0, 0x80]],
    ['the last low surrogate', [0xed, 0xbf, 0xbf]],
    ['a surrogate pair as in CESU-8', [0xed, 0xa0, 0xbc, 0xed, 0xbc, 0xb5]],
    ['U+110000', [0xf4, 0x90, 0x80, 0x80]],
    ['a lead byte beyond U+10FFFF', [0xf5, 0x80, 0x80, 0x80]],
    ['a sequence of five bytes', [0xf8, 0x88, 0x80, 0x80, 0x80]],
    ['a sequence of six bytes', [0xfc, 0x84, 0x80, 0x80, 0x80, 0x80]],
    ['0xFE', [0xfe]],
    ['0xFF', [0xff]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00]],
    ['Latin-1', [0xe9, 0x74, 0xe9]],
  ]
  for (const [name, bytes] of rows) {
    // A character too many is the one that is ill-formed, not the character before it.
    const at = name === 'one continuation byte too many' ? 2 : 0
    const expected = (offset: number): string =>
      `The body is not UTF-8: expected a well-formed character at byte ${offset + at}.`

    test(`${name}, as a whole`, () => refuses(Buffer.from(bytes), expected(0)))

    test(`${name}, in a string after well-formed characters`, () => {
      const before = Buffer.from('{"name":"Żaba \ufffd 🌵')
      refuses(Buffer.concat([before, Buffer.from(bytes), Buffer.from('"}')]), expected(before.length))
    })

    test(`${name}, alone in a string`, () => {
      refuses(Buffer.from([0x22, ...bytes, 0x22]), expected(1))
    })

    test(`${name}, at the end of a string that is cut short`, () => {
      refuses(Buffer.from([0x22, 0x61, ...bytes]), expected(2))
    })

    test(`${name}, after a syntax error`, () => {
      refuses(Buffer.from([0x7d, 0x20, ...bytes]), expected(2))
    })
  }
})

suite('takes 64 levels of arrays and objects', () => {
  const message = (offset: number): string =>
    `The body is nested too deeply: expected at most 64 levels at byte ${offset}.`

  test('64 arrays are read', () => {
    const text = '['.repeat(64) + ']'.repeat(64)
    assert.deepEqual(read(text), JSON.parse(text))
  })

  test('64 objects are read', () => {
    let value = read('{"a":'.repeat(63) + '{}' + '}'.repeat(63))
    for (let level = 1; level < 64; level++) {
      assert(value instanceof JsonObject && value.first !== undefined)
      value = value.first.value
    }
    assert.deepEqual(plain(value), { members: [] })
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
