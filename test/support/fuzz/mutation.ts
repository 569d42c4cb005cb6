import fc from 'fast-check'

/** What the grammars of HTTP, JSON and the parameters turn on. */
const TOKENS: readonly string[] = [
  ...['\r\n', '\n', '\r', '\0', ' ', '\t', ':', '\r\n\r\n'],
  ...['\x7f', '\xff', '\x80', '\xc3', '\xc3\xa9', '\xc0\x80', '\xe2\x82', '\xed\xa0\x80', '\xef\xbb\xbf', '\xf4\x90'],
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
  ...['{', '}', '[', ']', '"', ',', '\\', '\\"', '\\u', '\\u0000', '\\ud83c', '\\u0069d', 'null', 'true', '\x1f', '/'],
  ...['"id":', '"name":', '"tag":', '"__proto__":'],
  ...['9223372036854775807', '9223372036854775808', '9007199254740993', '1e999', '1e3', '0.5', '01'],
  ...['e1', '-0', '+', '.'],
  ...['1'.repeat(5000), '['.repeat(100), '"'.repeat(100), ' '.repeat(5000)],
]

/** A part of a text. */
type Span = (text: string) => readonly [start: number, length: number]

const lengths = fc.oneof(fc.constantFrom(0, 1, Infinity), fc.nat(64))

const spans: fc.Arbitrary<Span> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.nat(0xffff), lengths).map(([part, length]): Span => {
      return (text) => [Math.floor((part / 0xffff) * text.length), length]
    }),
  },
  // Where the first field begins.
  fc.constant<Span>((text) => [text.indexOf('\r\n') + 2, 0]),
  fc.nat(9).map((n): Span => (text) => {
    const numbers = [...text.matchAll(/[0-9]+/g)]
    const number = numbers[n % numbers.length]
    return [number?.index ?? 0, number?.[0].length ?? 0]
  }),
)

function take(text: string, span: Span): string {
  const [start, length] = span(text)
  return text.slice(start, start + length)
}

/** Changes a text in a few places, or, once in a while, in none. Each character stands for a byte. */
export function mutate(original: fc.Arbitrary<string>, others: readonly string[]): fc.Arbitrary<string> {
  const inserts: fc.Arbitrary<(text: string) => string> = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...TOKENS).map((token) => () => token) },
    fc.uint8Array({ maxLength: 8 }).map((bytes) => () => String.fromCharCode(...bytes)),
    fc.integer().map((number) => () => String(number)),
    fc.tuple(fc.constantFrom(...others), spans).map(([other, span]) => {
      return () => take(other, span)
    }),
    spans.map((span) => (text: string) => take(text, span)),
  )
  const times = fc.oneof({ weight: 30, arbitrary: fc.constant(1) }, fc.constant(1000))
  const changes = fc.array(fc.tuple(spans, inserts, times), { maxLength: 4 })
  return fc.tuple(original, changes).map(([whole, changes]) =>
    changes.reduce((text, [span, insert, times]) => {
      const [start, length] = span(text)
      const inserted = insert(text)
      return text.slice(0, start) + inserted.repeat(inserted.length > 64 ? 1 : times) + text.slice(start + length)
    }, whole),
  )
}
