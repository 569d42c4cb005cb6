import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { closeServer } from '../../src/standalone/drain.ts'
import type { Connection } from '../../src/standalone/http-server.ts'
import { block, countTimers } from '../support/event-loop.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { serve } from '../support/service.ts'

/** With so much time, each step of a drain has more than a test: the shortest one 10 s. */
const AMPLE_MS = 1_000_000

interface Steps {
  /** Is called when requests begin to wait; the drain of the test ends after it. */
  readonly onShut?: () => unknown
  readonly timeoutMs?: number
  readonly refuse?: (socket: Duplex) => void
}

/** A server without clients, which a test drains. */
class Draining {
  readonly server: Server
  readonly connections = new Map<Duplex, Connection>()

  private constructor(server: Server) {
    this.server = server
  }

  static async listen(t: TestContext): Promise<Draining> {
    return new Draining(await serve(t, createServer()))
  }

  /** Gives the time for which requests have waited: until the listening socket was closed. */
  async drain({
    onShut = () => undefined,
    timeoutMs = AMPLE_MS,
    refuse = () => undefined,
  }: Steps = {}): Promise<number> {
    let shutAt = NaN
    let waitedMs = NaN
    let shutting: unknown
    const gate = {
      listener: () => undefined,
      shut: () => {
        shutAt = performance.now()
        shutting = onShut()
      },
      open: () => {
        waitedMs = performance.now() - shutAt
      },
    }
    await closeServer(this.server, this.connections, gate, timeoutMs, refuse)
    await shutting
    return waitedMs
  }
}

const SILENT: Connection = {}

test('a drain that is late warns of nothing', async (t) => {
  // Node warns once in a process: this test comes first.
  const warnings: Error[] = []
  const onWarning = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const draining = await Draining.listen(t)
  await draining.drain({ timeoutMs: 20, onShut: () => block(20) })
  assert.deepEqual(warnings, [])
})

test('a connection that comes at the start of a drain, and stays, makes it listen for as long as it may', async (t) => {
  const draining = await Draining.listen(t)
  const startedAt = performance.now()
  const drained = draining.drain({ timeoutMs: 500 })
  const socket = new PassThrough()
  draining.connections.set(socket, SILENT)
  draining.server.emit('connection', socket)
  await drained
  const ms = performance.now() - startedAt
  assert.ok(ms > 390, `${ms} ms`)
})

suite('while requests wait, a drain goes on listening', { timeout: 10_000 }, () => {
  test('for a moment if a connection is open', async (t) => {
    const draining = await Draining.listen(t)
    const onShut = (): unknown => draining.connections.set(new PassThrough(), SILENT)
    const ms = await draining.drain({ onShut })
    assert.ok(ms > 45 && ms < 5000, `${ms} ms`)
  })

  test('hardly at all if no connection is open', async (t) => {
    const times: number[] = []
    // Something else may keep the machine busy for as long as a connection would make it wait.
    for (let i = 0; i < 4; i++) times.push(await (await Draining.listen(t)).drain())
    assert.ok(Math.min(...times) < 45, `${times.join(' ms, ')} ms`)
  })

  test('while each turn of the event loop accepts a connection', async (t) => {
    const draining = await Draining.listen(t)
    const { server } = draining
    async function flood(): Promise<void> {
      for (let turn = 1; turn <= 200; turn++) {
        server.emit('connection', new PassThrough())
        await setImmediate()
        assert.ok(server.listening, `it has stopped in turn ${turn}`)
      }
    }
    await draining.drain({ onShut: flood })
  })

  test('while each turn of the event loop takes long', async (t) => {
    const draining = await Draining.listen(t)
    async function blockTurns(): Promise<void> {
      for (let turn = 1; turn <= 20; turn++) {
        await setImmediate()
        block(2)
        assert.ok(draining.server.listening, `it has stopped in turn ${turn}`)
      }
    }
    await draining.drain({ onShut: blockTurns })
  })

  test('for 1 % of its time if every turn accepts a connection', async (t) => {
    const draining = await Draining.listen(t)
    const { server } = draining
    const endAt = performance.now() + 5000
    async function flood(): Promise<void> {
      while (server.listening && performance.now() < endAt) {
        server.emit('connection', new PassThrough())
        await setImmediate()
      }
    }
    const ms = await draining.drain({ timeoutMs: 1000, onShut: flood })
    assert.ok(ms >= 10 && ms < 3000, `${ms} ms`)
  })
})

test('a drain leaves no timer and no listener behind', async (t) => {
  const draining = await Draining.listen(t)
  const left = (): number[] => [countTimers(), draining.server.listenerCount('connection')]
  const before = left()
  // The first step ends since its time is over, which is before it has seen that no client comes.
  await draining.drain({ timeoutMs: 20 })
  assert.deepEqual(left(), before)
})

test('a drain closes a connection that it refuses once all is written to it, however slow that is', async (t) => {
  const draining = await Draining.listen(t)
  const { server, connections } = draining
  const events: string[] = []
  const slow = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done: () => void) => void setImmediate().then(done),
  })
  for (const event of ['finish', 'close']) slow.on(event, () => events.push(event))
  connections.set(slow, SILENT)
  // Until this one has closed, the drain goes on.
  server.on('connection', (socket: Socket) => connections.set(socket, SILENT))
  const client = await RawConnection.open(server)
  const closed = once(slow, 'close')
  await draining.drain({ timeoutMs: 100, refuse: (socket) => void socket.end('refused') })
  await Promise.all([client.closed, closed])
  assert.deepEqual(events, ['finish', 'close'])
})
