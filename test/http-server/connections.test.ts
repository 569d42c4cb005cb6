import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { createHttpServer } from '../../src/http-server/http-server.ts'
import { heapUsed } from '../support/heap.ts'
import { until } from '../support/until.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve } from '../support/wire/service.ts'

test('of a request that was answered, an idle connection keeps nothing', { timeout: 60_000 }, async (t) => {
  const answered: WeakRef<object>[] = []
  function answer(request: IncomingMessage, response: ServerResponse): void {
    answered.push(new WeakRef(request), new WeakRef(response))
    response.end()
  }
  const { server } = createHttpServer(answer, { keepAliveTimeoutMs: 600_000 })
  await serve(t, server)
  const client = await RawConnection.open(server)
  await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').receive(/\r\n\r\n/)
  await until(() => heapUsed() > 0 && answered.every((reference) => reference.deref() === undefined))
})
