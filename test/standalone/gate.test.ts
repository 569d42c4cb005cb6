import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { createGate, type Gate } from '../../src/standalone/gate.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { serve } from '../support/service.ts'

/** Serves a gate. Gives what sends a request, and settles once it is at the gate; and the requests that have passed. */
async function serveGate(
  t: TestContext,
): Promise<{ gate: Gate; send: (path: string) => Promise<void>; passed: string[] }> {
  const passed: string[] = []
  const gate = createGate(({ url }, response) => {
    passed.push(url!)
    response.end()
  })
  const server = await serve(t, gate.listener)
  async function send(path: string): Promise<void> {
    const client = await RawConnection.open(server)
    const arrived = once(server, 'request')
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    await arrived
  }
  return { gate, send, passed }
}

test('no request waits unless the gate was shut', async (t) => {
  const { send, passed } = await serveGate(t)
  await send('/1')
  assert.deepEqual(passed, ['/1'])
})

test('requests that waited go on once, in their order, when the gate opens, and later ones do not wait', async (t) => {
  const { gate, send, passed } = await serveGate(t)
  gate.shut()
  await send('/1')
  await send('/2')
  assert.deepEqual(passed, [])
  gate.open()
  gate.open()
  assert.deepEqual(passed, ['/1', '/2'])
  await send('/3')
  assert.deepEqual(passed, ['/1', '/2', '/3'])
})
