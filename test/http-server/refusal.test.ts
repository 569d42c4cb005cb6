import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { HttpError } from '../../src/http/errors.ts'
import { isTimeout, refuse, toHttpError } from '../../src/http-server/refusal.ts'
import { countTimers } from '../support/event-loop.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { close, listen, portOf } from '../support/wire/service.ts'

suite('what node:http says of a request that it could not read means', () => {
  const rows: readonly [code: string | undefined, error: number, isLate: boolean][] = [
    ['ERR_HTTP_REQUEST_TIMEOUT', 40800, true],
    ['HPE_HEADER_OVERFLOW', 43100, false],
    ['HPE_INVALID_METHOD', 40000, false],
    [undefined, 40000, false],
  ]
  for (const [code, expected, isLate] of rows) {
    test(`${code} is ${expected}`, () => {
      const error = Object.assign(new Error('Parse Error'), { code })
      assert.deepEqual([toHttpError(error).error, isTimeout(error)], [expected, isLate])
    })
  }
})

/** Refuses each connection to a server of its own. */
async function serveRefusals(t: TestContext): Promise<{ port: number; accepted: Promise<unknown[]> }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    refuse(socket, new HttpError('malformedRequest'), ['X-Request-Id', 'mine', 'Vary', 'Origin'])
  })
  await listen(server)
  t.after(() => close(server))
  return { port: portOf(server), accepted: once(server, 'connection') }
}

suite('a client that is refused', () => {
  test('gets a whole response with the further fields, and the end of the connection', async (t) => {
    const client = await RawConnection.open((await serveRefusals(t)).port)
    const [head, body] = (await client.closed).split('\r\n\r\n')
    assert.equal(body, '{"error":40000,"message":"The request is malformed."}')
    assert.deepEqual(
      head!.split('\r\n').map((line) => line.replace(/^Date: \w{3}, .* GMT$/, 'Date: now')),
      [
        'HTTP/1.1 400 Bad Request',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Date: now',
        'Connection: close',
        'X-Request-Id: mine',
        'Vary: Origin',
      ],
    )
  })

  test('has a second to see that, and is then cut', async (t) => {
    const { port, accepted } = await serveRefusals(t)
    const client = await RawConnection.open(port, true)
    const [socket] = (await accepted) as [Socket]
    const startedAt = performance.now()
    const closed = once(socket, 'close')
    await client.receive(/}$/)
    await closed
    const elapsed = performance.now() - startedAt
    assert.ok(elapsed > 900 && elapsed < 5000, `${elapsed} ms`)
  })

  test('leaves no timer behind once it has gone', async (t) => {
    const { port, accepted } = await serveRefusals(t)
    const gone = accepted.then(([socket]) => once(socket as Socket, 'close'))
    const before = countTimers()
    await (
      await RawConnection.open(port)
    ).closed
    await gone
    assert.equal(countTimers(), before)
  })
})
