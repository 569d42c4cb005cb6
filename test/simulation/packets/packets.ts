// First, as the service keeps the timers that it finds.
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
import { createListener } from '../../support/program/standalone-server.ts'
import { readAnswers } from '../../support/wire/wire.ts'
import { Wire } from '../server/wire.ts'
import type { Part, World } from '../simulation.ts'
import { faults } from './faults.ts'
import { assertSound, findDifference, type Outcome } from './outcome.ts'
import { requests } from './requests.ts'

const MANY: readonly NewPlant[] = Array.from({ length: 2500 }, (_, id) => ({ id: BigInt(id), name: `plant ${id}` }))

/** Longer than the server does nothing between an answer and the next. */
const IDLE_MS = 20

/** How many parts a request has: as many as the bytes of the longest one that is cut at each byte. */
const PARTS = 200

interface Cut {
  readonly part: number | 'body'
  readonly isAnswered: boolean
}

/** The parts before which a request is cut, and what the client waits for there: until the server has read it, or is idle. */
const cuts: fc.Arbitrary<readonly Cut[]> = fc.oneof(
  {
    weight: 99,
    arbitrary: fc.array(
      fc.record({
        part: fc.oneof(fc.constantFrom(0, 'body' as const), fc.nat(PARTS - 1)),
        isAnswered: fc.boolean(),
      }),
      { maxLength: 2 },
    ),
  },
  fc.constant(Array.from({ length: PARTS }, (_, part) => ({ part, isAnswered: part % 2 === 0 }))),
)

const scenarios = fc.noBias(
  fc.record({
    /** Whether the server is one of `node:http` as it is, and not that of the program. */
    isPlain: fc.boolean(),
    pace: fc.nat(),
    pieces: fc.array(fc.record({ request: requests, cuts }), { minLength: 1, maxLength: 6 }),
    /** How often the first request is sent before: now and then more than a connection may have waiting. */
    repeats: fc.oneof({ weight: 39, arbitrary: fc.constant(0) }, fc.integer({ min: 110, max: 150 })),
  }),
)
type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never

interface Packet {
  readonly bytes: string
  readonly isAnswered: boolean
}

/** Sound and mutated requests, sent twice to a server: in one packet, and cut into several, which must change nothing. */
export const packets: Part<Scenario> = {
  name: 'packets',
  scenarios,
  faults,
  async play(scenario, world) {
    try {
      const split = packetsOf(scenario)
      const bytes = split.map((packet) => packet.bytes).join('')
      const service = openService(world, scenario)
      const whole = await converse(world, service, scenario.isPlain, [{ bytes, isAnswered: true }])
      const difference = findDifference(whole, await converse(world, service, scenario.isPlain, split))
      world.expect(difference === undefined, difference!)
    } finally {
      // Leaves nothing to the next simulation.
      await world.time.passUntil(world.time.now + 10_000, () => false)
    }
  },
}

function packetsOf({ pieces, repeats }: Scenario): readonly Packet[] {
  const packets: Packet[] = []
  let bytes = pieces[0]!.request.repeat(repeats)
  for (const { request, cuts } of pieces) {
    let start = 0
    const ends = cuts.map(({ part, isAnswered }) => {
      const isBody = part === 'body'
      return { end: isBody ? request.indexOf('\r\n\r\n') + 4 : Math.floor((part / PARTS) * request.length), isAnswered }
    })
    for (const { end, isAnswered } of ends.sort((a, b) => a.end - b.end)) {
      packets.push({ bytes: bytes + request.slice(start, end), isAnswered })
      start = end
      bytes = ''
    }
    bytes += request.slice(start)
  }
  return [...packets, { bytes, isAnswered: true }]
}

/** Sends the packets of one client, and reads until the server closes. */
async function converse(
  world: World,
  service: Service,
  isPlain: boolean,
  packets: readonly Packet[],
): Promise<Outcome> {
  const { time } = world
  const { server } = service
  service.memory = memoryStore()
  const writes: string[] = (service.writes = [])
  let received: Buffer = Buffer.alloc(0)
  const wire = new Wire(world, {
    readsAt: () => time.now,
    receive: (bytes) => (received = Buffer.concat([received, bytes])),
    receiveEnd: () => time.after(0, () => wire.arrive(null)),
    closed: () => undefined,
  })
  server.emit('connection', wire)

  for (const { bytes, isAnswered } of packets) {
    world.tell('sends', [bytes])
    if (bytes !== '') wire.arrive(Buffer.from(bytes, 'latin1'))
    let before: number
    do {
      before = received.length + writes.length
      await world.pass(isAnswered ? IDLE_MS : 1)
    } while (isAnswered && before < received.length + writes.length)
  }
  const isClosed = wire.writableEnded || wire.destroyed
  // Had the client ended its side before, Node would not send what it has not answered yet.
  wire.arrive(null)
  await time.passUntil(time.now + 10_000, () => wire.destroyed)

  world.tell('gets', [received.toString('latin1')])
  world.expect(wire.destroyed, 'the connection closes')
  world.expect(service.connectionCount() === 0, 'no connection is kept')
  const isHead = packets
    .map(({ bytes }) => bytes)
    .join('')
    .includes('HEAD ')
  const { answers, rest } = readAnswers(received, isHead)
  const outcome = { answers, rest: rest.toString('latin1'), isClosed, isPlain, writes }
  assertSound(outcome)
  return outcome
}

interface Service {
  readonly server: Server
  readonly connectionCount: () => number
  /** The plants, and the creates and deletes that were carried out. */
  memory: Store
  writes: string[]
}

/** Calls of its store are answered at once or later: as the pace and the call say, and nothing else. */
function openService(world: World, { isPlain, pace }: Scenario): Service {
  function answer<T>(call: string, act: () => T): T | Promise<T> {
    let hash = pace
    for (let i = 0; i < call.length; i++) hash = Math.imul(hash ^ call.charCodeAt(i), 0x01000193)
    const ms = Math.max(0, ((hash >>> 16) % 8) - 4)
    return ms === 0 ? act() : new Promise((resolve) => world.time.after(ms, () => resolve(act())))
  }

  function write(owner: string, call: string, act: () => unknown): boolean | Promise<boolean> {
    return answer(call, () => {
      const isDone = owner === 'ada' && act() === true
      service.writes.push(`${call}: ${isDone}`)
      return isDone
    })
  }

  const options: PlantStoreOptions = {
    authenticate: (token) => (token === 'ada' || token === 'many' ? answer(token, () => token) : null),
    store: {
      create: (owner, plant) => write(owner, `create ${plant.id}`, () => service.memory.create(owner, plant)),
      delete: (owner, id) => write(owner, `delete ${id}`, () => service.memory.delete(owner, id)),
      list: (owner, page) =>
        answer(`list ${page.limit} ${page.after}`, () => {
          if (owner === 'ada') return service.memory.list(owner, page) as Page
          const start = Number(page.after ?? -1) + 1
          const end = start + page.limit
          return { plants: MANY.slice(start, end), hasMore: end < MANY.length }
        }),
      ping: () => new Promise((resolve) => world.time.after(1, resolve)),
    },
    maxBodyBytes: 10_000,
    onError: (error) => world.expect(false, 'the host is told of no error:', error),
  }
  const plain = { server: createServer(createPlantStore(options)), connectionCount: () => 0 }
  const { server, connectionCount } = isPlain ? plain : createHttpServer(createListener(options))
  // Node looks for late requests by the clock of the system.
  Object.assign(server, { headersTimeout: 0, requestTimeout: 0 })
  const service: Service = { server, connectionCount, memory: memoryStore(), writes: [] }
  return service
}
