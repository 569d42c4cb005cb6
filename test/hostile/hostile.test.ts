import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assertAnswer } from '../support/wire/assert-answer.ts'
import { HOSTILE_CASES } from './cases.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { get, send, servePlants } from '../support/wire/service.ts'
import type { WireAnswer } from '../support/wire/wire.ts'

for (const [name, cases] of Object.entries(HOSTILE_CASES)) {
  suite(name, () => {
    for (const row of cases) {
      test(row.name, { timeout: 60_000 }, async (t) => {
        const errors: unknown[] = []
        const server = await servePlants(t, {
          authenticate: (token) => (token === 'ada' ? token : null),
          maxBodyBytes: 2 * 2 ** 20,
          onError: (error) => errors.push(error),
        })
        // Only the response closes a connection.
        server.keepAliveTimeout = 0
        const client = await RawConnection.open(server)
        const final = row.answers.filter((answer) => answer !== 100).length

        const answers = client.answers(row.after === 'closed' ? Infinity : final)
        client.send(row.bytes)
        if (row.isEnded) client.socket.end()
        assert.deepEqual((await answers).map(nameAnswer), row.answers)

        if (row.after === 'open') {
          const next = client.answers(1)
          client.send('OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n')
          assert.equal((await next)[0]!.status, 204)
        } else if (row.after === 'discarding') {
          assert.equal((await answers).at(-1)!.headers.get('connection'), 'close')
        }
        const { status, body } = await send(server, get('ada'))
        assert.deepEqual([status, body], [200, row.isKept ? '[{"name":"Fern"}]' : '[]'])
        if (row.after === 'waiting') assert.equal(client.socket.bytesRead, 0)
        assert.deepEqual(errors, [])
        client.socket.destroy()
      })
    }
  })
}

/** An answer as the table puts it. */
function nameAnswer(answer: WireAnswer): number | string {
  assertAnswer(answer, true)
  const { status, body } = answer
  if (status < 400) return status
  return body === '' ? `node:http ${status}` : (JSON.parse(body) as { error: number }).error
}
