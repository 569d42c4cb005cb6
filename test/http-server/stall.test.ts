import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect, type ListenOptions, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore } from '../../src/index.ts'
import { createHttpServer } from '../../src/http-server/http-server.ts'
import { close } from '../support/wire/service.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'

const ADA = 'GET /plants HTTP/1.0\r\nAuthorization: Bearer YWRh\r\n\r\n'

/** Half of these are more than a kernel takes for a client that reads nothing. */
const PLANTS = 500
const NAME = 'x'.repeat(16_000)
const BODY = `[${new Array(PLANTS).fill(`{"name":"${NAME}"}`).join()}]`

const IPV4 = { host: '127.0.0.1', port: 0 }
const TABLE = '/proc/self/net/tcp'
const onLinux = { skip: existsSync(TABLE) ? false : 'only Linux tells what it holds for a client', timeout: 60_000 }

/** Serves a long list of ada's plants. Gives what opens connections, which send a request and read nothing. */
async function serve(t: TestContext, stallTimeoutMs: number, where: ListenOptions = IPV4) {
  const store = memoryStore()
  for (let id = 1; id <= PLANTS; id++) await store.create('ada', { id: BigInt(id), name: NAME })
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

/** Reads at a steady pace, about 6 MB a second, until the connection ends or is cut. */
async function readSlowly(client: Socket): Promise<string> {
  const pieces: Buffer[] = []
  const pace = setInterval(() => {
    const piece = client.read(Math.min(client.readableLength, 64 * 1024)) as Buffer | null
    if (piece !== null) pieces.push(piece)
  }, 10)
  await new Promise((resolve) => client.on('close', resolve))
  clearInterval(pace)
  return Buffer.concat(pieces).toString('latin1')
}

/** The rows of the kernel's table about the end of a connection that has these ports. */
function rowsOf(localPort: number, remotePort: number): string[] {
  const ends = [localPort, remotePort].map((port) => `[0-9A-F]+:${port.toString(16).toUpperCase().padStart(4, '0')}`)
  return readFileSync(TABLE, 'latin1').match(new RegExp(`^ *[0-9]+: ${ends.join(' ')} .*$`, 'gm')) ?? []
}

// The kernel takes more from the process only once a third of its buffer is empty, which takes this client 0.2 s.
test('a client that reads slowly but steadily gets its list whole', async (t) => {
  const connectTo = await serve(t, 2000)
  const { client } = await connectTo(ADA)
  const received = await readSlowly(client)
  assert.ok(received.endsWith(`\r\n\r\n${BODY}`))
})

test('a client that reads nothing is cut, and the kernel keeps nothing for it', onLinux, async (t) => {
  const connectTo = await serve(t, 200)
  const startedAt = performance.now()
  const { accepted } = await connectTo(ADA)
  const [local, remote] = [accepted.localPort!, accepted.remotePort!]
  assert.equal(rowsOf(local, remote).length, 1)
  await once(accepted, 'close')
  const ms = performance.now() - startedAt
  assert.ok(ms > 190, `it was cut after ${ms} ms`)
  assert.deepEqual(rowsOf(local, remote), [])
})

suite('a client that reads nothing is cut even', { timeout: 60_000 }, () => {
  const proxied = `${ADA.replace('1.0', '1.1')}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`
  for (const [name, request, goesOn, isLocal] of [
    ['if it has asked for a proxy meanwhile', proxied, '', false],
    ['if it goes on sending', ADA, 'G', false],
    ['if it is one of a local socket', ADA, '', true],
  ] as const) {
    test(name, async (t) => {
      const connectTo = await serve(t, 200, isLocal ? { path: join(temporaryDirectory(t), 'socket') } : IPV4)
      const { client, accepted } = await connectTo(request)
      const drip = setInterval(() => client.write(goesOn), 20)
      t.after(() => clearInterval(drip))
      await once(accepted, 'close')
    })
  }
})
