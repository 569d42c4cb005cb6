import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { connect, type ListenOptions, type Socket } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore, type Store } from '../../src/index.ts'
import { readHeld } from '../../src/standalone/held-bytes.ts'
import { readSettings } from '../../src/standalone/settings.ts'
import { createHttpServer } from '../../src/standalone/http-server.ts'
import { cutStalled, type Pace } from '../../src/standalone/stall.ts'
import { delegatingStore } from '../support/delegating-store.ts'

const GET = 'GET /plants HTTP/1.0\r\nAuthorization: Bearer '
const [ADA, BOB] = [`${GET}YWRh\r\n\r\n`, `${GET}Ym9i\r\n\r\n`]

/** Half of these are more than a kernel takes for a client that reads nothing. */
const PLANTS = 500
const NAME = 'x'.repeat(16_000)
const BODY = `[${new Array(PLANTS).fill(`{"name":"${NAME}"}`).join()}]`

const IPV4 = { host: '127.0.0.1', port: 0 }
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
const skip = existsSync(TABLES[0]!) ? false : 'only Linux tells what it holds for a client'
const hasIPv6 = Object.values(networkInterfaces()).some((of) => of!.some(({ address }) => address === '::1'))

type Connect = (request: string) => Promise<{ client: Socket; accepted: Socket }>

/** Serves a long list of ada's plants. */
async function serve(
  t: TestContext,
  pace: Partial<Pace>,
  where: ListenOptions,
  toStore = (store: Store): Store => store,
): Promise<Connect> {
  const store = memoryStore()
  for (let id = 1; id <= PLANTS; id++) await store.create('ada', { id: BigInt(id), name: NAME })
  const plants = createPlantStore({ tokens: { YWRh: 'ada', Ym9i: 'bob' }, store: toStore(store) })
  return listen(t, createHttpServer(plants, { ...readSettings({}), ...pace }).server, where)
}

/** Starts a server. Gives what opens connections to it, which send a request and read nothing. */
async function listen(t: TestContext, server: Server, where: ListenOptions): Promise<Connect> {
  await once(server.listen(where), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return async (request) => {
    const accepting = once(server, 'connection') as Promise<[Socket]>
    const address = server.address()!
    const client = typeof address === 'string' ? connect(address) : connect(address.port, where.host)
    t.after(() => client.destroy())
    client.on('error', () => undefined).write(request)
    const [accepted] = await accepting
    return { client, accepted }
  }
}

/** Reads at a steady pace, about 1.5 MB a second, until the connection ends or is cut. */
async function readSlowly(client: Socket): Promise<string> {
  const pieces: Buffer[] = []
  const pace = setInterval(() => {
    const piece = client.read(Math.min(client.readableLength, 64 * 1024)) as Buffer | null
    if (piece !== null) pieces.push(piece)
  }, 40)
  await new Promise((resolve) => client.on('close', resolve))
  clearInterval(pace)
  return Buffer.concat(pieces).toString('latin1')
}

/** The rows of the kernel's tables about the end of a connection that has these ports. */
function rowsOf(localPort: number, remotePort: number): string[] {
  const ends = [localPort, remotePort].map((port) => `[0-9A-F]+:${port.toString(16).toUpperCase().padStart(4, '0')}`)
  const row = new RegExp(`^ *[0-9]+: ${ends.join(' ')} `)
  return TABLES.flatMap((path) => readFileSync(path, 'latin1').split('\n')).filter((line) => row.test(line))
}

const ADDRESSES = { IPv4: '127.0.0.1', IPv6: '::1', 'IPv4 to a listener of IPv6': '::ffff:127.0.0.1' }

suite('what counts is what the client takes', { concurrency: true, skip }, () => {
  for (const [name, host] of Object.entries(ADDRESSES)) {
    const options = { skip: host.includes(':') && !hasIPv6 ? 'this machine has no IPv6' : false }

    // The kernel takes more from the process only once much of its buffer is empty: later than this time-out.
    test(`a client that reads slowly but steadily gets its list whole over ${name}`, options, async (t) => {
      const connectTo = await serve(t, { stallTimeoutMs: 300 }, { host, port: 0 })
      const { client } = await connectTo(ADA)
      const received = await readSlowly(client)
      assert.ok(received.endsWith(`\r\n\r\n${BODY}`))
    })

    test(`a client that reads nothing over ${name} is cut, and the kernel keeps nothing for it`, options, async (t) => {
      const connectTo = await serve(t, { stallTimeoutMs: 200 }, { host, port: 0 })
      const startedAt = performance.now()
      const { accepted } = await connectTo(ADA)
      const [local, remote] = [accepted.localPort!, accepted.remotePort!]
      assert.equal(rowsOf(local, remote).length, 1)
      await once(accepted, 'close', { signal: AbortSignal.timeout(20_000) })
      const ms = performance.now() - startedAt
      assert.ok(ms > 190, `it was cut after ${ms} ms`)
      assert.deepEqual(rowsOf(local, remote), [])
    })
  }
})

suite('a client that reads a little now and then', { skip }, () => {
  test('is cut if that is less than it must read', async (t) => {
    const connectTo = await serve(t, { stallTimeoutMs: 300, minBytesPerSecond: 10_000_000 }, IPV4)
    const { client, accepted } = await connectTo(ADA)
    const received = await readSlowly(client)
    assert.ok(received.length < BODY.length, `it got ${received.length} characters`)
    assert.ok(accepted.closed)
  })

  test('gets its list whole if it may read as little as it likes', async (t) => {
    const connectTo = await serve(t, { stallTimeoutMs: 300, minBytesPerSecond: 0 }, IPV4)
    const { client } = await connectTo(ADA)
    const received = await readSlowly(client)
    assert.ok(received.endsWith(`\r\n\r\n${BODY}`))
  })
})

test('a client that reads nothing is cut even if it goes on sending', async (t) => {
  const connectTo = await serve(t, { stallTimeoutMs: 200 }, IPV4)
  const { client, accepted } = await connectTo(ADA)
  const drip = setInterval(() => client.write('G'), 20)
  t.after(() => clearInterval(drip))
  await once(accepted, 'close', { signal: AbortSignal.timeout(20_000) })
})

test('a client that reads nothing is cut, but later, if the system has no tables of what it holds', async (t) => {
  const server = createServer((_, response) => response.end(BODY))
  const startedAt = performance.now()
  cutStalled(server, { stallTimeoutMs: 50, minBytesPerSecond: 1024 }, (sockets) => readHeld(['/nowhere'], sockets))
  const connectTo = await listen(t, server, IPV4)
  const { accepted } = await connectTo(ADA)
  await once(accepted, 'close', { signal: AbortSignal.timeout(20_000) })
  const ms = performance.now() - startedAt
  assert.ok(ms > 190, `it was cut after ${ms} ms`)
})

test('a client of a local socket that reads nothing is cut', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'plants-'))
  t.after(() => rm(folder, { recursive: true }))
  const connectTo = await serve(t, { stallTimeoutMs: 50 }, { path: join(folder, 'socket') })
  const { accepted } = await connectTo(ADA)
  await once(accepted, 'close', { signal: AbortSignal.timeout(20_000) })
})

test('a client is not cut while it is the store that is slow', async (t) => {
  let release: () => void
  const released = new Promise<void>((resolve) => (release = resolve))
  const connectTo = await serve(t, { stallTimeoutMs: 50 }, IPV4, (store) =>
    delegatingStore(store, {
      list: (owner, page) => (owner === 'ada' ? store.list(owner, page) : released.then(() => [])),
    }),
  )
  const waiting = await connectTo(BOB)
  // Longer than a client may take nothing of which the system does not tell.
  for (let i = 0; i < 6; i++) {
    const stalled = await connectTo(ADA)
    await once(stalled.accepted, 'close', { signal: AbortSignal.timeout(20_000) })
  }
  release!()
  assert.match(await readSlowly(waiting.client), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n\[\]$/)
})
