import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startProgram } from '../support/program/program.ts'
import type { RawConnection } from '../support/wire/raw-connection.ts'

test('connections beyond the maximum are counted in the log, at most once a second', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
  const first = await program.connect()
  const others = await Promise.all([program.connect(), program.connect(), program.connect()])
  for (const { closed } of others) assert.match(await closed, /^(<ECONNRESET>)?$/)
  const lines = [await program.logged('connections-dropped'), await program.logged('connections-dropped', 2)]
  assert.deepEqual(
    lines.map(({ count, max }) => [count, max]),
    [
      [1, 1],
      [2, 1],
    ],
  )
  const [at = 0, nextAt = 0] = lines.map(({ time }) => Date.parse(String(time)))
  assert.ok(nextAt - at > 900, `${nextAt - at} ms between them`)
  assert.doesNotMatch(program.stderr.all.join(), /descriptors-exhausted/)
  first.socket.end()
})

test('that there is no descriptor left for a connection is logged every second, and the program serves on', async (t) => {
  const program = await startProgram(t, {}, 100)
  const connections: RawConnection[] = []
  while (connections.length < 100) connections.push(await program.connect())
  const lines = [await program.logged('descriptors-exhausted'), await program.logged('descriptors-exhausted', 2)]
  assert.deepEqual(
    lines.map(({ code }) => code),
    ['EMFILE', 'EMFILE'],
  )
  const [first = 0, second = 0] = lines.map(({ time }) => Date.parse(String(time)))
  assert.ok(second - first > 900, `${second - first} ms between them`)
  assert.doesNotMatch(program.stderr.all.join(), /connections-dropped/)
  for (const { socket, closed } of connections) {
    socket.end()
    await closed
  }
  assert.equal((await program.fetch('/plants')).status, 200)
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
})
