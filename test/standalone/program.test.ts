import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { captureLog } from '../support/program/captured-log.ts'
import { ask, serveProgram, serveWithAdmin, WRITER } from '../support/program/in-process-program.ts'
import { scrape } from '../support/program/metrics.ts'

const LIST = `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITER}\r\n\r\n`

suite('the program', () => {
  test('logs no refusal on a bare connection without an access log', async (t) => {
    const events = captureLog(t)
    assert.equal((await ask(await serveProgram(t, {}), 'no HTTP\r\n\r\n')).status, 400)
    assert.deepEqual(events, [])
  })

  test('logs that its guard wakes', async (t) => {
    const events = captureLog(t)
    const port = await serveProgram(t, {})
    await ask(port, LIST.repeat(102))
    assert.deepEqual(
      events.map(({ event, isAwake }) => [event, isAwake]),
      [['guard', true]],
    )
  })

  test('measures the calls of its store if it has an admin port', async (t) => {
    const { port, admin } = await serveWithAdmin(t)
    await ask(port, LIST)
    const calls = 'plant_store_store_call_duration_seconds_count{operation="list",outcome="ok"} 1\n'
    assert.ok((await scrape(admin)).includes(calls))
  })
})
