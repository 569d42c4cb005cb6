import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { askReady } from '../../src/standalone/ready.ts'
import { portOf, serve } from '../support/service.ts'

/** Asks a service with this listener, which says that it listens on all addresses. */
async function askOf(t: TestContext, listener: RequestListener, storeTimeoutMs = 1000): Promise<void> {
  await askReady({ host: '0.0.0.0', port: portOf(await serve(t, listener)), storeTimeoutMs })
}

suite('a service', () => {
  test('is ready if /readyz answers 200', async (t) => {
    let url: string | undefined
    await askOf(t, (request, response) => {
      url = request.url
      response.end('ready')
    })
    assert.equal(url, '/readyz')
  })

  test('is not ready if it answers anything else, and the error quotes that', async (t) => {
    const asking = askOf(t, (_, response) => response.writeHead(503).end('busy'))
    await assert.rejects(asking, { message: 'the service is not ready: busy' })
  })

  test('is not ready if nobody listens', async () => {
    await assert.rejects(askReady({ host: '127.0.0.1', port: 1, storeTimeoutMs: 1000 }), { code: 'ECONNREFUSED' })
  })

  test('may take somewhat longer than its store', async (t) => {
    await askOf(t, (_, response) => void setTimeout(300).then(() => response.end()), 100)
  })

  test('is not ready if it takes a second longer', async (t) => {
    const startedAt = performance.now()
    await assert.rejects(
      askOf(t, () => undefined, 100),
      { message: 'the service did not answer in time' },
    )
    assert.ok(performance.now() - startedAt < 5000)
  })

  test('cannot be asked at port 0', async () => {
    await assert.rejects(askReady({ host: '127.0.0.1', port: 0, storeTimeoutMs: 1 }), {
      name: 'SettingError',
      message: 'PORT takes for --ready the port on which the service listens, not 0',
    })
  })
})
