import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assertContractResponse } from '../support/wire/assert-response.ts'
import { HOSTILE_CASES } from './hostile-cases.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { get, sendRequest, servePlants } from '../support/wire/service.ts'
import type { RawResponse } from '../support/wire/parse-responses.ts'

for (const [name, cases] of Object.entries(HOSTILE_CASES)) {
  suite(name, () => {
    for (const row of cases) {
      test(row.name, { timeout: 300_000 }, async (t) => {
        const errors: unknown[] = []
        const server = await servePlants(t, {
          authenticate: (token) => (token === 'ada' ? token : null),
          maxBodyBytes: 2 * 2 ** 20,
          onError: (error) => errors.push(error),
        })
        // Only the response closes a connection.
        server.keepAliveTimeout = 0
        const client = await RawConnection.open(server)
        const final = row.responses.filter((answer) => answer !== 100).length

        const answers = client.readResponses(row.connectionState === 'closed' ? Infinity : final)
        client.send(row.bytes)
        if (row.endsConnection) client.socket.end()
        assert.deepEqual((await answers).map(summarizeResponse), row.responses)

        if (row.connectionState === 'open') {
          const next = client.readResponses(1)
          client.send('OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n')
          assert.equal((await next)[0]!.status, 204)
        } else if (row.connectionState === 'discarding') {
          assert.equal((await answers).at(-1)!.headers.get('connection'), 'close')
        }
        const { status, body } = await sendRequest(server, get('ada'))
        assert.deepEqual([status, body], [200, row.isStored ? '[{"name":"Fern"}]' : '[]'])
        if (row.connectionState === 'waiting') assert.equal(client.socket.bytesRead, 0)
        assert.deepEqual(errors, [])
        client.socket.destroy()
      })
    }
  })
}

/** An answer as the table puts it. */
function summarizeResponse(answer: RawResponse): number | string {
  assertContractResponse(answer, true)
  const { status, body } = answer
  if (status < 400) return status
  return body === '' ? `node:http ${status}` : (JSON.parse(body) as { error: number }).error
}
