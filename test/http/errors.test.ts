import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS } from '../../src/http/errors.ts'
import { bearer, del, get, post, send, servePlants, type Request } from '../support/wire/service.ts'

/** The most bytes of an error's body; the longest message says all that can be wrong with a plant. */
const MAX_BYTES = 1024

/** What a client sends in the hope to see it again. */
const ECHO = 'echo'.repeat(2000)

const MEMBERS = '"id":"echo","name":1,"tag":null,'

/** For each kind of error what makes its message longest, if anything does. */
const WORST: readonly (readonly [error: number, name: string, request: Request])[] = [
  [40000, 'a bad escape', del('ada', `%zz${ECHO}`)],
  [40001, 'text in place of JSON', post('ada', ECHO)],
  [40001, 'a string without an end', post('ada', `"${ECHO}`)],
  [40001, 'bytes that are no UTF-8', post('ada', Buffer.from(`"${ECHO}\xff"`, 'latin1'))],
  [40001, 'many levels', post('ada', '['.repeat(60_000))],
  [40002, 'members that are wrong and given twice', post('ada', `{${MEMBERS.repeat(1900)}"id":"echo"}`)],
  [40002, 'members unknown', post('ada', `{"${ECHO}":"${ECHO}"}`)],
  [40002, 'no object', post('ada', JSON.stringify(ECHO))],
  [40003, 'an id', del('ada', ECHO)],
  [40004, 'a query', get('ada', `/plants?${'limit=echo&after=echo&'.repeat(300)}`)],
  [40100, 'another scheme', { ...get('ada'), fields: ['Authorization', `Basic ${ECHO}`] }],
  [40101, 'a token', get(ECHO)],
  [40400, 'a path', get('ada', `/${ECHO}`)],
  [40401, 'an id that no plant has', del('ada', '-9223372036854775808')],
  [40500, 'a method', { ...get('ada'), method: 'PROPPATCH' }],
  [41300, 'a body over the limit', post('ada', ECHO.repeat(9))],
  [41500, 'a type', { ...post('ada', '{}'), fields: [...bearer('ada'), 'Content-Type', ECHO] }],
  [41501, 'a coding', post('ada', '{}', ['Content-Encoding', ECHO])],
  [43100, 'many fields', get('ada')],
]

for (const [error, name, request] of WORST) {
  test(`the message of ${error} is short and holds nothing that was sent: ${name}`, async (t) => {
    const server = await servePlants(t, { authenticate: (token) => (token === 'ada' ? token : null) })
    const fields = error === 43100 ? [...request.fields, ...Array.from({ length: 2 * 997 }, () => 'a')] : request.fields

    const { status, body } = await send(server, { ...request, fields })

    assert.equal(status, Math.trunc(error / 100))
    assert.equal((JSON.parse(body) as { error: number }).error, error)
    assert.ok(Buffer.byteLength(body) <= MAX_BYTES, `the body has ${Buffer.byteLength(body)} bytes`)
    assert.doesNotMatch(body, /echo/)
  })
}

test('each error has a code and a message of its own', () => {
  const rows = Object.values(ERRORS)
  assert.equal(new Set(rows.map(({ error }) => error)).size, rows.length)
  assert.equal(new Set(rows.map(({ message }) => message)).size, rows.length)
  for (const { message } of rows) assert.match(message, /^[A-Z].+\.$/)
})
