import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { isClosed, whenClosed } from '../../src/http/transport.ts'
import { serveIn } from '../support/wire/client.ts'
import { until } from '../support/until.ts'

const GET = { method: 'GET', path: '/', fields: [] }

for (const protocol of ['http', 'h2c'] as const) {
  suite(`a response in ${protocol}`, { timeout: 10_000 }, () => {
    test('is open until it is ended', async (t) => {
      const seen: boolean[] = []
      const client = await serveIn(t, protocol, (_, response) => {
        seen.push(isClosed(response))
        response.end()
        seen.push(isClosed(response))
      })
      await client.send(GET)
      assert.deepEqual(seen, [false, true])
    })

    test('is closed once its client has gone, and says so then', async (t) => {
      const told: boolean[] = []
      let accepted: ServerResponse | undefined
      const client = await serveIn(t, protocol, (_, response) => {
        accepted = response
        whenClosed(response, () => told.push(isClosed(response)))
      })
      const request = client.open(GET)
      request.on('error', () => undefined).end()
      await until(() => accepted !== undefined)

      request.destroy()

      await until(() => told.length > 0)
      assert.deepEqual(told, [true])
    })

    test('says at once that it was closed before', async (t) => {
      let isTold = false
      let isToldAtOnce: boolean | undefined
      const client = await serveIn(t, protocol, (_, response) => {
        response.end()
        whenClosed(response, () => (isTold = true))
        isToldAtOnce = isTold
      })
      await client.send(GET)
      assert.equal(isToldAtOnce, true)
    })
  })
}
