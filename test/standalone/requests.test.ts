import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { idOf } from '../../src/standalone/requests.ts'
import { captureLog, valuesOf } from '../support/program/captured-log.ts'
import { ask, serveProgram } from '../support/program/in-process-program.ts'
import { NEW_ID, startProgram } from '../support/program/program.ts'

const GET = 'GET /plants HTTP/1.1\r\nHost: a\r\n'

suite('the id of a request', () => {
  for (const [whose, sent] of [
    ["the client's own", 'x'],
    ["the client's own", '!'.repeat(128)],
    ["the client's own", '01JDZ/abc~{"}'],
    ['a new one', ''],
    ['a new one', 'x'.repeat(129)],
    ['a new one', 'a b'],
    ['a new one', '\u00e9'],
    ['a new one', 'a\r\nX-Request-Id: b'],
  ] as const) {
    test(`is ${whose} in response and log if the client sent ${JSON.stringify(sent)}`, async (t) => {
      const events = captureLog(t)
      const port = await serveProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
      const { headers } = await ask(port, `${GET}X-Request-Id: ${sent}\r\nConnection: close\r\n\r\n`)
      const id = headers.get('x-request-id')!
      if (whose === 'a new one') assert.match(id, NEW_ID)
      else assert.equal(id, sent)
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

  test('is a new one in a response to what node:http refuses, of which nothing is read, and its own in one to CONNECT', async (t) => {
    const port = await serveProgram(t, {})
    const refused = await ask(port, `${GET}X-Request-Id: mine\r\nno field\r\n\r\n`)
    assert.match(refused.headers.get('x-request-id')!, NEW_ID)
    const proxied = await ask(port, 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n')
    assert.equal(proxied.headers.get('x-request-id'), 'mine')
  })
})
