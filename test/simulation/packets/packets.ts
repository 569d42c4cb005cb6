// Must be imported before the service, which binds the timers when it is loaded.
import '../virtual-time.ts'
import { createServer, type Server } from 'node:http'
import fc from 'fast-check'
import { createHttpServer } from '../../../src/http-server/http-server.ts'
import {
  createPlantStore,
  memoryStore,
  type NewPlant,
  type Page,
  type PlantStoreOptions,
  type Store,
} from '../../../src/index.ts'
import { createTestListener } from '../../support/program/test-listener.ts'
import { parseResponses } from '../../support/wire/parse-responses.ts'
import { SimulatedSocket } from '../server/simulated-socket.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { mutants } from './mutants.ts'
import { assertValidOutcome, findDifference, type ConversationOutcome } from './outcome.ts'
import { requests } from './requests.ts'

const MANY_PLANTS: readonly NewPlant[] = Array.from({ length: 2500 }, (_, id) => ({
  id: BigInt(id),
  name: `plant ${id}`,
}))

/** Longer than the server pauses between two responses. */
const IDLE_MS = 20

/**
 * The number of positions at which a request can be split. Requests of up to this many bytes can be split at every
 * byte.
 */
const SPLIT_POSITIONS = 200

interface Split {
  readonly part: number | 'body'
  readonly waitsForResponse: boolean
}

/**
 * Where to split a request, and whether the client then waits until the server is idle, or only until it has read the
 * first part.
 */
const splits: fc.Arbitrary<readonly Split[]> = fc.oneof(
  {
    weight: 99,
    arbitrary: fc.array(
      fc.record({
        part: fc.oneof(fc.constantFrom(0, 'body' as const), fc.nat(SPLIT_POSITIONS - 1)),
        waitsForResponse: fc.boolean(),
      }),
      { maxLength: 2 },
    ),
  },
  fc.constant(Array.from({ length: SPLIT_POSITIONS }, (_, part) => ({ part, waitsForResponse: part % 2 === 0 }))),
)

const scenarios = fc.noBias(
  fc.record({
    /** Whether the server is a plain `node:http` server instead of `createHttpServer()`. */
    isNodeServer: fc.boolean(),
    delaySeed: fc.nat(),
    parts: fc.array(fc.record({ request: requests, splits }), { minLength: 1, maxLength: 6 }),
    /** How often the first request is repeated: occasionally enough to activate the overload guard. */
    repeats: fc.oneof({ weight: 39, arbitrary: fc.constant(0) }, fc.integer({ min: 110, max: 150 })),
  }),
)
type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never

interface Packet {
  readonly bytes: string
  readonly waitsForResponse: boolean
}

/** Sends valid and mutated requests to a server twice: in one packet, and split. Both must have the same outcome. */
export const packets: SimulatedSystem<Scenario> = {
  name: 'packets',
  scenarios,
  mutants,
  async play(scenario, world) {
    try {
      const split = createPackets(scenario)
      const bytes = split.map((packet) => packet.bytes).join('')
      const service = createTestService(world, scenario)
      const unsplit = await sendPackets(world, service, scenario.isNodeServer, [{ bytes, waitsForResponse: true }])
      const difference = findDifference(unsplit, await sendPackets(world, service, scenario.isNodeServer, split))
      world.check(difference === undefined, difference!)
    } finally {
      // Leaves no state for the next scenario.
      await world.time.advanceTo(world.time.now + 10_000, () => false)
    }
  },
}

function createPackets({ parts, repeats }: Scenario): readonly Packet[] {
  const packets: Packet[] = []
  let bytes = parts[0]!.request.repeat(repeats)
  for (const { request, splits } of parts) {
    let start = 0
    const ends = splits.map(({ part, waitsForResponse }) => {
      const isBody = part === 'body'
      return {
        end: isBody ? request.indexOf('\r\n\r\n') + 4 : Math.floor((part / SPLIT_POSITIONS) * request.length),
        waitsForResponse,
      }
    })
    for (const { end, waitsForResponse } of ends.sort((a, b) => a.end - b.end)) {
      packets.push({ bytes: bytes + request.slice(start, end), waitsForResponse })
      start = end
      bytes = ''
    }
    bytes += request.slice(start)
  }
  return [...packets, { bytes, waitsForResponse: true }]
}

/** Sends the packets of one client, and reads until the server closes. */
async function sendPackets(
  world: Simulation,
  service: Service,
  isPlain: boolean,
  packets: readonly Packet[],
): Promise<ConversationOutcome> {
  const { time } = world
  const { server } = service
  service.store = memoryStore()
  const writes: string[] = (service.writes = [])
  let received: Buffer = Buffer.alloc(0)
  const wire = new SimulatedSocket(world, {
    getNextReadTime: () => time.now,
    receive: (bytes) => (received = Buffer.concat([received, bytes])),
    receiveEnd: () => time.schedule(0, () => wire.pushIncoming(null)),
    onClose: () => undefined,
  })
  server.emit('connection', wire)

  for (const { bytes, waitsForResponse } of packets) {
    world.log('sent', [bytes])
    if (bytes !== '') wire.pushIncoming(Buffer.from(bytes, 'latin1'))
    let progressBefore: number
    do {
      progressBefore = received.length + writes.length
      await world.advance(waitsForResponse ? IDLE_MS : 1)
    } while (waitsForResponse && progressBefore < received.length + writes.length)
  }
  const isClosed = wire.writableEnded || wire.destroyed
  // Ends the client's side only now, because a plain Node server would drop its pending responses.
  wire.pushIncoming(null)
  await time.advanceTo(time.now + 10_000, () => wire.destroyed)

  world.log('received', [received.toString('latin1')])
  world.check(wire.destroyed, 'the connection closes')
  world.check(service.connectionCount() === 0, 'the server tracks no closed connection')
  const isHead = packets
    .map(({ bytes }) => bytes)
    .join('')
    .includes('HEAD ')
  const { responses, rest } = parseResponses(received, isHead)
  const outcome = { responses, remainder: rest.toString('latin1'), isClosed, isPlain, writes }
  assertValidOutcome(outcome)
  return outcome
}

interface Service {
  readonly server: Server
  readonly connectionCount: () => number
  store: Store
  /** The executed creates and deletes. */
  writes: string[]
}

/** Store calls return immediately or later. The delay depends on `delaySeed` and the call only. */
function createTestService(world: Simulation, { isNodeServer: isPlain, delaySeed }: Scenario): Service {
  function respondAfterDelay<T>(call: string, action: () => T): T | Promise<T> {
    let hash = delaySeed
    for (let i = 0; i < call.length; i++) hash = Math.imul(hash ^ call.charCodeAt(i), 0x01000193)
    const ms = Math.max(0, ((hash >>> 16) % 8) - 4)
    return ms === 0 ? action() : new Promise((resolve) => world.time.schedule(ms, () => resolve(action())))
  }

  function write(owner: string, call: string, action: () => unknown): boolean | Promise<boolean> {
    return respondAfterDelay(call, () => {
      const isDone = owner === 'ada' && action() === true
      service.writes.push(`${call}: ${isDone}`)
      return isDone
    })
  }

  const options: PlantStoreOptions = {
    authenticate: (token) => (token === 'ada' || token === 'many' ? respondAfterDelay(token, () => token) : null),
    store: {
      create: (owner, plant) => write(owner, `create ${plant.id}`, () => service.store.create(owner, plant)),
      delete: (owner, id) => write(owner, `delete ${id}`, () => service.store.delete(owner, id)),
      list: (owner, page) =>
        respondAfterDelay(`list ${page.limit} ${page.after}`, () => {
          if (owner === 'ada') return service.store.list(owner, page) as Page
          const start = Number(page.after ?? -1) + 1
          const end = start + page.limit
          return { plants: MANY_PLANTS.slice(start, end), hasMore: end < MANY_PLANTS.length }
        }),
      ping: () => new Promise((resolve) => world.time.schedule(1, resolve)),
    },
    maxBodyBytes: 10_000,
    onError: (error) => world.check(false, 'onError is not called:', error),
  }
  const plain = { server: createServer(createPlantStore(options)), connectionCount: () => 0 }
  const { server, connectionCount } = isPlain ? plain : createHttpServer(createTestListener(options))
  // Node's checks for late requests use the system clock.
  Object.assign(server, { headersTimeout: 0, requestTimeout: 0 })
  const service: Service = { server, connectionCount, store: memoryStore(), writes: [] }
  return service
}
