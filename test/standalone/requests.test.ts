import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { idOf } from '../../src/standalone/requests.ts'
import { captureLog, valuesOf } from '../support/program/captured-log.ts'
import { ask, serveProgram } from '../support/program/in-process-program.ts'
import { NEW_ID, startProgram } from '../support/program/program.ts'

const HOST = 'Host: plants\r\n'

suite('the id of a request', () => {
  const rows: readonly [what: string, fields: string, id: string | RegExp][] = [
    ...['x', '!'.repeat(128), '01JDZ/abc~{"}'].map((id): (typeof rows)[number] => [id, `X-Request-Id: ${id}\r\n`, id]),
    ['none', '', NEW_ID],
    ['an empty one', 'X-Request-Id:\r\n', NEW_ID],
    ['one of 129 characters', `X-Request-Id: ${'x'.repeat(129)}\r\n`, NEW_ID],
    ['one with a space', 'X-Request-Id: a b\r\n', NEW_ID],
    ['one that is not ASCII', 'X-Request-Id: \u00e9\r\n', NEW_ID],
    ['two', 'X-Request-Id: a\r\nX-Request-Id: b\r\n', NEW_ID],
  ]
  for (const [what, fields, expected] of rows) {
    const whose = expected === NEW_ID ? 'a new one' : "the client's own"
    test(`is ${whose} in response and log if the client sent ${what.slice(0, 30)}`, async (t) => {
      const events = captureLog(t)
      const port = await serveProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
      const answer = await ask(port, `GET /plants HTTP/1.1\r\n${HOST}${fields}Connection: close\r\n\r\n`)
      const id = answer.headers.get('x-request-id')!
      if (expected === NEW_ID) assert.match(id, NEW_ID)
      else assert.equal(id, expected)
      assert.deepEqual(valuesOf(events, 'request'), [id])
    })
  }

  test('is another one for each request, and in each process', async (t) => {
    const program = await startProgram(t)
    const elsewhere = (await program.fetch('/livez')).headers.get('x-request-id')!
    const ids = [idOf({ headers: {} }), idOf({ headers: {} }), elsewhere]
    for (const id of ids) assert.match(id, NEW_ID)
    const [processes, numbers] = [0, 1].map((part) => ids.map((id) => id.split('-')[part]))
    assert.equal(new Set(processes).size, 2)
    assert.notEqual(numbers![0], numbers![1])
  })

  test('is a new one in a response to what node:http refuses, of which nothing is read', async (t) => {
    const port = await serveProgram(t, {})
    const answer = await ask(port, `GET /plants HTTP/1.1\r\n${HOST}X-Request-Id: mine\r\nno field\r\n\r\n`)
    assert.match(answer.headers.get('x-request-id')!, NEW_ID)
  })

  test('is its own in a response to CONNECT', async (t) => {
    const port = await serveProgram(t, {})
    const answer = await ask(port, `CONNECT plants:80 HTTP/1.1\r\n${HOST}X-Request-Id: mine\r\n\r\n`)
    assert.equal(answer.headers.get('x-request-id'), 'mine')
  })
})
