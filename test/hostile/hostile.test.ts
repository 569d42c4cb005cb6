import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assertContractResponse } from '../support/assert-response.ts'
import { HOSTILE_CASES, type HostileCase } from './hostile-cases.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { get, sendRequest, servePlants } from '../support/service.ts'
import type { RawResponse } from '../support/parse-responses.ts'

for (const [name, cases] of Object.entries(HOSTILE_CASES)) {
  suite(name, () => {
    for (const row of cases) {
      test(describeBehavior(row), { timeout: 60_000 }, async (t) => {
        const errors: unknown[] = []
        const server = await servePlants(t, {
          authenticate: (token) => (token === 'ada' ? token : null),
          maxBodyBytes: 2 * 2 ** 20,
          onError: (error) => errors.push(error),
        })
        // Otherwise, the keep-alive timeout could close the connection instead of the response.
        server.keepAliveTimeout = 0
        const client = await RawConnection.open(server)
        const finalCount = row.responses.filter((response) => response !== 100).length

        const responses = client.readResponses(row.connectionState === 'closed' ? Infinity : finalCount)
        client.send(row.bytes)
        if (row.endsConnection) client.socket.end()
        assert.deepEqual((await responses).map(summarizeResponse), row.responses)

        if (row.connectionState === 'open') {
          const next = client.readResponses(1)
          client.send('OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n')
          assert.equal((await next)[0]!.status, 204)
        } else if (row.connectionState === 'discarding') {
          assert.equal((await responses).at(-1)!.headers.get('connection'), 'keep-alive')
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

/** Names the test of a case, such as 'rejects two identical Host fields with 40000'. */
function describeBehavior({ name, responses, connectionState }: HostileCase): string {
  const last = responses.at(-1)
  if (last === undefined)
    return `${connectionState === 'closed' ? 'closes the connection' : 'waits for the rest of the request'} after ${name}`
  const verb = typeof last === 'number' && last < 400 ? 'accepts' : 'rejects'
  const outcome = responses.join(', then ').replace(/(node:http) (\d+)/, '$2 from $1')
  return `${verb} ${name} with ${outcome}`
}

/** Returns a response in the form of a case's `responses`. */
function summarizeResponse(response: RawResponse): number | string {
  assertContractResponse(response, true)
  const { status, body } = response
  if (status < 400) return status
  return body === '' ? `node:http ${status}` : (JSON.parse(body) as { error: number }).error
}
