import fc from 'fast-check'

/** Significant tokens of JSON and UTF-8. */
const TOKENS: readonly string[] = [
  ...['\r\n', '\n', '\r', '\0', ' ', '\t', ':'],
  ...['\x7f', '\xff', '\x80', '\xc3', '\xc3\xa9', '\xc0\x80', '\xe2\x82', '\xed\xa0\x80', '\xef\xbb\xbf', '\xf4\x90'],
  ...['{', '}', '[', ']', '"', ',', '\\', '\\"', '\\u', '\\u0000', '\\ud83c', '\\u0069d', 'null', 'true', '\x1f', '/'],
  ...['"id":', '"name":', '"tag":', '"__proto__":'],
  ...['9223372036854775807', '9223372036854775808', '9007199254740993', '1e999', '1e3', '0.5', '01'],
  ...['e1', '-0', '+', '.'],
  ...['1'.repeat(5000), '['.repeat(100), '"'.repeat(100), ' '.repeat(5000)],
]

/** Mutates words, numbers and punctuation of a string in up to four places. Each character represents a byte. */
export function mutate(original: fc.Arbitrary<string>, otherTexts: readonly string[]): fc.Arbitrary<string> {
  const change = fc.record({
    position: fc.nat(),
    deleteCount: fc.oneof(fc.constantFrom(0, 1, Infinity), fc.nat(64)),
    inserted: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...TOKENS) },
      fc.uint8Array({ maxLength: 8 }).map((bytes) => String.fromCharCode(...bytes)),
      fc.integer().map(String),
      fc.tuple(fc.constantFrom(...otherTexts), fc.nat(), fc.nat(64)).map(([text, position, length]) => {
        const start = position % text.length
        return text.slice(start, start + length)
      }),
    ),
    times: fc.oneof({ weight: 30, arbitrary: fc.constant(1) }, fc.constant(1000)),
  })
  return fc.tuple(original, fc.array(change, { maxLength: 4 })).map(([text, changes]) => {
    const parts = text.match(/[0-9]+|[a-z]+|[^]/gi) ?? []
    for (const { position: place, deleteCount: removed, inserted, times } of changes) {
      parts.splice(place % (parts.length + 1), removed, inserted.repeat(inserted.length > 64 ? 1 : times))
    }
    return parts.join('')
  })
}
