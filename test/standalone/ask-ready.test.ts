import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { askReady } from '../../src/standalone/ask-ready.ts'
import { portOf, serve } from '../support/wire/service.ts'

/** Asks a service with this listener, which says that it listens on all addresses. */
async function askOf(t: TestContext, listener: RequestListener, timeoutMs?: number): Promise<void> {
  await askReady({ host: '0.0.0.0', port: portOf(await serve(t, listener)) }, timeoutMs)
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
    await assert.rejects(askReady({ host: '127.0.0.1', port: 1 }), { code: 'ECONNREFUSED' })
  })

  test('is not ready if it does not answer in time', async (t) => {
    await assert.rejects(
      askOf(t, () => undefined, 100),
      { message: 'the service did not answer in time' },
    )
  })

  test('cannot be asked at port 0', async () => {
    await assert.rejects(askReady({ host: '127.0.0.1', port: 0 }), {
      name: 'SettingError',
      message: 'PORT takes for --ready the port on which the service listens, not 0',
    })
  })
})
