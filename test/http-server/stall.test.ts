import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect, type ListenOptions, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore } from '../../src/index.ts'
import { createHttpServer } from '../../src/http-server/http-server.ts'
import { close } from '../support/wire/service.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const ADA_LIST_REQUEST = 'GET /plants HTTP/1.0\r\nAuthorization: Bearer YWRh\r\n\r\n'

/** Even half of these plants exceed what the kernel buffers for a client that never reads. */
const PLANT_COUNT = 500
const NAME = 'x'.repeat(16_000)
const BODY = `[${new Array(PLANT_COUNT).fill(`{"name":"${NAME}"}`).join()}]`

const IPV4 = { host: '127.0.0.1', port: 0 }
const TCP_TABLE = '/proc/self/net/tcp'
const linuxOptions = {
  skip: existsSync(TCP_TABLE) ? false : 'only Linux exposes its TCP connections in /proc',
  timeout: 60_000,
}

/** Serves a long list of plants. Returns a function that opens a connection and sends a request without reading. */
async function serve(t: TestContext, stallTimeoutMs: number, where: ListenOptions = IPV4) {
  const store = memoryStore()
  for (let id = 1; id <= PLANT_COUNT; id++) await store.create('ada', { id: BigInt(id), name: NAME })
  const plants = createPlantStore({ tokens: { YWRh: 'ada' }, store })
  const { server } = createHttpServer(plants, { stallTimeoutMs })
  await once(server.listen(where), 'listening')
  t.after(() => close(server))
  return async (request: string) => {
    const accepting = once(server, 'connection') as Promise<[Socket]>
    const address = server.address()!
    const client = typeof address === 'string' ? connect(address) : connect(address.port, where.host)
    t.after(() => client.destroy())
    client.on('error', () => undefined).write(request)
    const [accepted] = await accepting
    return { client, accepted }
  }
}

/** Reads steadily, about 6 MB/s, until the connection closes. */
async function readSlowly(client: Socket): Promise<string> {
  const chunks: Buffer[] = []
  const pace = setInterval(() => {
    const piece = client.read(Math.min(client.readableLength, 64 * 1024)) as Buffer | null
    if (piece !== null) chunks.push(piece)
  }, 10)
  await new Promise((resolve) => client.on('close', resolve))
  clearInterval(pace)
  return Buffer.concat(chunks).toString('latin1')
}

/** Returns the rows of the kernel's TCP table for one end of a connection. */
function findTcpRows(localPort: number, remotePort: number): string[] {
  const ends = [localPort, remotePort].map((port) => `[0-9A-F]+:${port.toString(16).toUpperCase().padStart(4, '0')}`)
  return readFileSync(TCP_TABLE, 'latin1').match(new RegExp(`^ *[0-9]+: ${ends.join(' ')} .*$`, 'gm')) ?? []
}

// The kernel accepts more data only when a third of its send buffer is empty, which takes 0.2 s with this client.
test('a client that reads slowly but steadily receives the complete list', async (t) => {
  const connectTo = await serve(t, 2000)
  const { client } = await connectTo(ADA_LIST_REQUEST)
  const received = await readSlowly(client)
  assert.ok(received.endsWith(`\r\n\r\n${BODY}`))
})

test('the kernel frees the send buffer of a connection whose client never reads', linuxOptions, async (t) => {
  const connectTo = await serve(t, 200)
  const startedAt = performance.now()
  const { accepted } = await connectTo(ADA_LIST_REQUEST)
  const [local, remote] = [accepted.localPort!, accepted.remotePort!]
  assert.equal(findTcpRows(local, remote).length, 1)
  await once(accepted, 'close')
  const ms = performance.now() - startedAt
  assert.ok(ms > 190, `the connection was closed after ${ms} ms`)
  assert.deepEqual(findTcpRows(local, remote), [])
})

suite('a client that never reads is disconnected', { timeout: 60_000 }, () => {
  const proxied = `${ADA_LIST_REQUEST.replace('1.0', '1.1')}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`
  for (const [name, request, extraByte, isUnixSocket] of [
    ['even after sending a CONNECT request', proxied, '', false],
    ['even if the client keeps sending', ADA_LIST_REQUEST, 'G', false],
    ['on a Unix socket', ADA_LIST_REQUEST, '', true],
  ] as const) {
    test(name, async (t) => {
      const connectTo = await serve(t, 200, isUnixSocket ? { path: join(createTempDirectory(t), 'socket') } : IPV4)
      const { client, accepted } = await connectTo(request)
      const drip = setInterval(() => client.write(extraByte), 20)
      t.after(() => clearInterval(drip))
      await once(accepted, 'close')
    })
  }
})
