import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startProgram } from '../support/program.ts'
import type { RawConnection } from '../support/raw-connection.ts'

test('connections beyond the most that may be are counted in the log', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
  const first = await program.connect()
  const others = await Promise.all([program.connect(), program.connect(), program.connect()])
  for (const { closed } of others) assert.match(await closed, /^(<ECONNRESET>)?$/)
  const { count, max } = await program.logged('connections-dropped')
  assert.deepEqual({ count, max }, { count: 3, max: 1 })
  first.socket.end()
})

test('that there is no descriptor left for a connection is logged, and the program serves on', async (t) => {
  const program = await startProgram(t, {}, 100)
  const connections: RawConnection[] = []
  while (connections.length < 100) connections.push(await program.connect())
  const { code } = await program.logged('descriptors-exhausted')
  assert.equal(code, 'EMFILE')
  for (const { socket, closed } of connections) {
    socket.end()
    await closed
  }
  assert.equal((await program.fetch('/plants')).status, 200)
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
})
