import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { authenticate, CONTRACT_CASES } from './contract/cases.ts'
import { post, send, servePlants } from './support/service.ts'

for (const [name, cases] of Object.entries(CONTRACT_CASES)) {
  suite(name, () => {
    for (const row of cases) {
      test(row.name, async (t) => {
        const server = await servePlants(t, { authenticate })
        for (const body of row.given) assert.equal((await send(server, post('owner', body))).status, 200)

        const { status, headers, body } = await send(server, row.request('owner'))

        const length = row.status === 204 ? {} : { 'content-length': String(Buffer.byteLength(row.body)) }
        assert.deepEqual(
          { status, headers, body },
          { status: row.status, headers: { ...length, ...row.headers }, body: row.body },
        )
      })
    }
  })
}
