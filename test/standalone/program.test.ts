import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { captureLog, valuesOf } from '../support/program/captured-log.ts'
import { ask, serveProgram, serveWithAdmin, WRITER } from '../support/program/in-process-program.ts'
import { scrape } from '../support/program/metrics.ts'

const LIST = `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITER}\r\n\r\n`

suite('the program', () => {
  for (const [page, status] of [
    ['1', 200],
    ['0', 404],
  ] as const) {
    test(`answers ${status} at / if PLANT_STORE_PAGE is ${page}`, async (t) => {
      const port = await serveProgram(t, { PLANT_STORE_PAGE: page })
      assert.equal((await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')).status, status)
    })
  }

  for (const [accessLog, logged] of [
    ['1', ['refused']],
    ['0', []],
  ] as const) {
    test(`logs ${logged.length} refusals on a bare connection if PLANT_STORE_ACCESS_LOG is ${accessLog}`, async (t) => {
      const events = captureLog(t)
      const port = await serveProgram(t, { PLANT_STORE_ACCESS_LOG: accessLog })
      assert.equal((await ask(port, 'no HTTP\r\n\r\n')).status, 400)
      assert.deepEqual(valuesOf(events, 'event'), logged)
    })
  }

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
