import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { needsDebian, PostgresServer, startPgbouncer } from '../../../support/wire/debian-servers.ts'
import { startProgram } from '../../../support/program/program.ts'

const CLIENTS = 64
const REQUESTS = Number(process.env['TEST_POOLER_REQUESTS'] ?? 2000)

suite('behind PgBouncer in transaction mode, without a setting', { skip: needsDebian }, () => {
  test('answers every request, and gives prepared statements up with one word', async (t) => {
    const server = await PostgresServer.start(t)
    const port = await startPgbouncer(t, server, 5)
    const url = `postgres://plants@127.0.0.1:${port}/postgres`
    const programs = [await startProgram(t, { PLANT_STORE_URL: url }), await startProgram(t, { PLANT_STORE_URL: url })]
    const statuses = new Map<string, number>()
    let sent = 0

    async function ask(kind: string, ...[path, init]: Parameters<(typeof programs)[0]['fetch']>): Promise<void> {
      const response = await programs[sent++ % programs.length]!.fetch(path, init)
      await response.arrayBuffer()
      const key = `${kind} ${response.status}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
    }

    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let id = client; sent < REQUESTS; id += CLIENTS) {
          await ask('create', '/plants', { method: 'POST', body: `{"id":${id},"name":"Fern"}` })
          await ask('list', `/plants?limit=10&after=${id - 1}`)
          await ask('delete', `/plants/${id}`, { method: 'DELETE' })
        }
      }),
    )
    t.diagnostic(`${sent} requests: ${JSON.stringify([...statuses])}`)
    assert.deepEqual([...statuses.keys()].toSorted(), ['create 200', 'delete 204', 'list 200'])
    for (const program of programs) {
      assert.equal((await program.fetch('/readyz')).status, 200)
      assert.equal(program.stderr.all.filter((line) => line.includes('"event":"warning"')).length, 1)
      assert.match(String((await program.logged('warning'))['reason']), /^A pooler does not keep prepared statements/)
    }
  })

  test('cancels what takes too long', async (t) => {
    const server = await PostgresServer.start(t)
    const port = await startPgbouncer(t, server)
    const program = await startProgram(t, {
      PLANT_STORE_URL: `postgres://plants@127.0.0.1:${port}/postgres`,
      PLANT_STORE_STORE_TIMEOUT_MS: '2500',
    })
    const holder = await server.connect(t)
    await holder.query('BEGIN; LOCK TABLE plant_store_plants')
    const response = await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    assert.deepEqual([response.status, ((await response.json()) as { error: number }).error], [503, 50300])
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`
    assert.deepEqual(await server.query(waiting), [])
    await holder.query('ROLLBACK')
    assert.equal((await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })).status, 200)
  })
})
