import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readBrokenHead } from '../../src/standalone/request-head.ts'

suite('a head that could not be read tells', () => {
  const rows: readonly [what: string, head: string, headers: Readonly<Record<string, string>>][] = [
    [
      'the origin and the id',
      'GET / HTTP/1.1\r\nORIGIN: a\r\nHost: h\r\nx-request-id: b\r\nno field\r\n\r\n',
      { origin: 'a', 'x-request-id': 'b' },
    ],
    ['a value without the white space around it', 'Origin:\t a b \t\r\n', { origin: 'a b' }],
    ['both values of a field that comes twice', 'Origin: a\r\nX: c\r\norigin: b\r\n', { origin: 'a, b' }],
    ['a field that is not whole', 'X: c\r\nX-Request-Id: b', { 'x-request-id': 'b' }],
    ['nothing of fields whose names only end so', 'X-Origin: a\r\nMy-X-Request-Id: b\r\n', {}],
  ]
  for (const [what, head, headers] of rows) {
    test(what, () => assert.deepEqual(readBrokenHead(Buffer.from(head, 'latin1')), { headers }))
  }
})
