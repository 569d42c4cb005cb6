import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startProgram, type Program } from '../support/program/program.ts'
import type { RawConnection } from '../support/wire/raw-connection.ts'

/** The first two events of a name, of which a program logs one a second. */
async function twoOf(program: Program, name: string): Promise<object[]> {
  const events = [await program.logged(name), await program.logged(name, 2)]
  const [at = 0, nextAt = 0] = events.map(({ time }) => Date.parse(String(time)))
  assert.ok(nextAt - at > 900, `${nextAt - at} ms between them`)
  return events.map(({ time, event, ...rest }) => (time && event === name ? rest : {}))
}

test('connections beyond the maximum are counted in the log, at most once a second', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
  const first = await program.connect()
  const others = await Promise.all([program.connect(), program.connect(), program.connect()])
  for (const { closed } of others) assert.match(await closed, /^(<ECONNRESET>)?$/)
  const expected = [1, 2].map((count) => ({ count, max: 1 }))
  assert.deepEqual(await twoOf(program, 'connections-dropped'), expected)
  assert.doesNotMatch(program.stderr.all.join(), /descriptors-exhausted/)
  first.socket.end()
})

test('that there is no descriptor left for a connection is logged every second, and the program serves on', async (t) => {
  const program = await startProgram(t, {}, { prelude: 'ulimit -n 100' })
  const connections: RawConnection[] = []
  while (connections.length < 100) connections.push(await program.connect())
  assert.deepEqual(await twoOf(program, 'descriptors-exhausted'), [{ code: 'EMFILE' }, { code: 'EMFILE' }])
  assert.doesNotMatch(program.stderr.all.join(), /connections-dropped/)
  for (const { socket, closed } of connections) {
    socket.end()
    await closed
  }
  assert.equal((await program.fetch('/plants')).status, 200)
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
})
