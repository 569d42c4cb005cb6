import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp2Server } from 'node:http2'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { connectTo } from '../support/wire/client.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { close, createService, get, listen, portOf, post } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const FERN = '{"id":1,"name":"Fern"}'

/** What a client of HTTP/2 sends to have a request answered. */
async function record(port: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  const proxy = createServer((client) => {
    client
      .on('data', (chunk) => chunks.push(chunk))
      .pipe(connect(port, '127.0.0.1'))
      .pipe(client)
  })
  await listen(proxy)
  const client = connectTo('h2c', portOf(proxy))
  assert.equal((await client.send(post('ada', FERN))).status, 200)
  client.close()
  proxy.close()
  await once(proxy, 'close')
  return Buffer.concat(chunks)
}

test('a client of HTTP/2 that goes at any byte of a POST leaves no trace', { timeout: 60_000 }, async (t) => {
  const counts = { creates: 0, errors: 0 }
  const store = delegatingStore(memoryStore(), { create: () => ++counts.creates > 0 })
  const onError = (): unknown => counts.errors++
  const server = createHttp2Server(createService({ store, onError }))
  await listen(server)
  t.after(() => close(server))
  const port = portOf(server)
  const bytes = await record(port)
  const bodyEnd = bytes.indexOf(FERN) + FERN.length
  assert.ok(bodyEnd > FERN.length)
  counts.creates = 0

  for (let length = 0; length < bytes.length; length++) {
    const accepting = once(server, 'connection') as Promise<[Socket]>
    const client = connect(port, '127.0.0.1')
    const [accepted] = await accepting
    client.write(bytes.subarray(0, length))
    await until(() => accepted.bytesRead === length)
    client.resetAndDestroy()
    await until(() => accepted.destroyed)
    if (length < bodyEnd) assert.equal(counts.creates, 0, `after ${length} bytes`)
  }

  assert.ok(counts.creates > 0)
  assert.equal(counts.errors, 0)
  const client = connectTo('h2c', port)
  assert.equal((await client.send(get('ada'))).status, 200)
  client.close()
})
