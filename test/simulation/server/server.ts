import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createHttpServer } from '../../../src/http-server/http-server.ts'
import { createPlantStore } from '../../../src/index.ts'
import type { Part, World } from '../simulation.ts'
import { Client } from './client.ts'
import type { Asked, House } from './exchanges.ts'
import { faults } from './faults.ts'
import { KINDS } from './requests.ts'
import { Plants, STORE_TIMEOUT_MS } from './plants.ts'
import { floodsOf, scenarios, type Plan, type Scenario } from './scenario.ts'

const LIMITS = {
  headersTimeoutMs: 250,
  requestTimeoutMs: 500,
  keepAliveTimeoutMs: 100,
  stallTimeoutMs: 180,
  checkIntervalMs: 90,
  guardMs: 3000,
}

/** When the guard wakes, and how many requests of a connection then wait. */
const MAX_WAITING = 100
const MAX_IN_SLICE = 56

/** How long a round may take. */
const MOST_WORK_MS = 900

/** The server of the program, and clients whose connections are in memory. */
export const server: Part<Scenario> = { name: 'server', scenarios, faults, play }

/** The request in whose context the service works. */
const current = new AsyncLocalStorage<Asked>()

async function play(scenario: Scenario, world: World): Promise<void> {
  const { time } = world
  const clients: Client[] = []
  const requests = new Map<number, Asked>()
  const house: House = { ...LIMITS, isGuarded: false, isDraining: false, isCutting: false, requests: 0 }
  let cut: number | undefined
  let isListening = true
  /** How many connections a drain cuts, beside those that come late: they may end before. */
  let left = 0
  let lateClients = 0
  const lateOnes = new Set<unknown>()
  /** When the drain begins, and whom it waits for. */
  let drainAt = Infinity
  let awaited: readonly Client[] = []
  /** How long the process was stopped. */
  let stoppedMs = 0

  const plants = new Plants(world, scenario.fates, () => current.getStore()!)
  const service = createPlantStore({
    store: plants,
    authenticate: (token) => plants.authenticate(token),
    storeTimeoutMs: STORE_TIMEOUT_MS,
    onError: () => undefined,
    onResponse: ({ request, status }) => told(request as IncomingMessage, status),
  })
  const http = createHttpServer(
    (request, response) => current.run(askedOf(request), () => service(request, response)),
    { ...LIMITS, drainTimeoutMs: scenario.drainTimeoutMs },
    undefined,
    {
      onRequest: begin,
      onRefusal: (_, { socket }) => clientOf(socket).refusals++,
      onGuard: guard,
      onAnswer: ({ request, status }) => told(request as IncomingMessage, status),
    },
  )
  const { server } = http
  // Node looks for late requests by the clock of the system, and knows idle connections by where they are in memory.
  Object.assign(server, { headersTimeout: 0, requestTimeout: 0, closeIdleConnections: closeIdle })
  Object.assign(server, { _handle: { close: stopListening } })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.prependListener(event, ({ socket }: IncomingMessage) => announce(clientOf(socket)))
  }
  server.emit('listening')
  world.atEnd(end)

  function clientOf(socket: unknown): Client {
    return clients.find(({ wire }) => wire === socket)!
  }

  function askedOf({ url }: IncomingMessage): Asked {
    return requests.get(Number(url!.split('n=')[1]))!
  }

  function begin(request: IncomingMessage, response: ServerResponse): void {
    const number = Number(request.url!.split('n=')[1])
    response.setHeader('X-Number', number)
    requests.set(number, clientOf(request.socket).begin(number, response))
  }

  /** Node announces a request. */
  function announce(client: Client): void {
    const mustWake = isFull(openOnes().filter(({ wire }) => !wire.writableEnded))
    world.expect(!mustWake || house.isGuarded, 'the guard wakes while many requests wait')
    client.announce()
    world.expect(!client.isSliced || client.waiting <= MAX_IN_SLICE, 'while the guard is awake, few requests wait')
  }

  function guard(isAwake: boolean): void {
    world.tell('guard', isAwake ? 'wakes' : 'sleeps')
    world.expect(house.isGuarded !== isAwake, 'the guard tells of changes')
    house.isGuarded = isAwake
    const isBusy = isFull(openOnes()) || plants.hasWorked
    world.expect(!isAwake || isBusy, 'the guard sleeps while few requests wait')
  }

  /** Whether more requests wait than may. */
  function isFull(clients: readonly Client[]): boolean {
    return clients.reduce((sum, { waiting }) => sum + waiting, 0) > MAX_WAITING
  }

  function slackMs(): number {
    return stoppedMs + (plants.hasWorked ? MOST_WORK_MS : 10)
  }

  function told(request: IncomingMessage, status: number): void {
    const asked = askedOf(request)
    world.expect(asked.told === undefined, 'each answer is told of once:', asked.number)
    asked.told = status
  }

  function openOnes(): Client[] {
    return clients.filter(({ wire }) => !wire.destroyed)
  }

  function connect(plan: Plan): void {
    if (!isListening) return
    const client = new Client(world, house, plan)
    clients.push(client)
    if (house.isCutting) lateClients++
    const { wire } = client
    // What `net` does.
    const counted = server as unknown as { _connections: number; _emitCloseIfDrained(): void }
    counted._connections++
    wire.once('close', () => {
      counted._connections--
      counted._emitCloseIfDrained()
    })
    server.emit('connection', wire)
    wire.prependListener('data', ({ length }: Buffer) => client.onRead(length))
  }

  /** The process is stopped for a while, and its clients go on. */
  function stop(ms: number, forMs: number): void {
    time.after(ms, () => {
      world.tell('stops for', forMs)
      stoppedMs += forMs
      plants.hasWorked = true
      time.work(forMs)
    })
  }

  function closeIdle(): void {
    for (const { isIdle, wire } of openOnes()) if (isIdle) wire.destroy()
  }

  function lookForLate(): void {
    const { headersTimeoutMs, requestTimeoutMs } = LIMITS
    for (const client of openOnes()) {
      const { current, openedAt, read, wire } = client
      const since = read === 0 ? openedAt : current?.readAt
      const asked = read === 0 ? client : current
      if (since === undefined || lateOnes.has(asked)) continue
      const isHeadThere = read > 0 && current!.headEnd <= read
      if (time.now - since <= (isHeadThere ? requestTimeoutMs : headersTimeoutMs)) continue
      lateOnes.add(asked)
      world.tell('late', current?.number)
      const error = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
      server.emit('clientError', error, wire)
    }
    if (cut === undefined) time.after(LIMITS.checkIntervalMs, lookForLate)
  }

  function drain(): void {
    world.tell('drain')
    house.isDraining = true
    drainAt = time.now
    awaited = scenario.isShared ? openOnes() : clients
    const late = scenario.stops[1]
    if (late !== undefined) stop(0.8 * scenario.drainTimeoutMs + (late[0] % 30), late[1])
    time.after(scenario.drainTimeoutMs, () => {
      house.isCutting = true
      left = openOnes().length
    })
    void http.drain(scenario.isShared).then((count) => {
      world.tell('drained', count)
      world.expect(openOnes().length === 0, 'after a drain no connection is open')
      const inTime = time.now <= drainAt + scenario.drainTimeoutMs + slackMs()
      world.expect(inTime, 'a drain ends in its time')
      const isRight = count >= left && count <= left + lateClients
      world.expect(isRight, 'a drain says how many connections it has cut:', count, left)
      cut = count
    })
  }

  function stopListening(): void {
    world.tell('stops listening')
    isListening = false
    const { now } = time
    const quietMs = now - Math.max(drainAt, ...awaited.map(({ closedAt }) => closedAt))
    const isLate = now >= drainAt + 0.8 * scenario.drainTimeoutMs
    world.expect(isLate || quietMs >= 50, 'a drain listens until no connection was open for a moment:', quietMs)
    world.expect(quietMs < 50 + slackMs() || quietMs === -Infinity, 'a drain goes on after that:', quietMs)
  }

  function check({ number, kind, answer, told, wholeAt }: Asked): void {
    const { kept } = plants
    const status = answer! > 999 ? Math.trunc(answer! / 100) : answer
    world.expect(told === undefined || answer === undefined || told === status, 'what is told is so:', number)
    if (KINDS[kind]!.line !== 'POST /plants') return
    const isKept = kept.has(BigInt(number))
    const isUnknown = answer === 50301 || (answer === undefined && wholeAt !== undefined)
    world.expect(isUnknown || isKept === (answer === 200), 'what is acknowledged is kept, and no more:', number)
  }

  /** Leaves nothing to the next simulation. */
  async function end(): Promise<void> {
    for (const { wire } of openOnes()) wire.destroy()
    await time.passUntil(time.now, () => false)
    current.disable()
  }

  const { plans, drainMs, floods, stops } = scenario
  const startedAt = time.now
  for (const plan of [...floodsOf(floods), ...plans]) time.after(plan.ms, () => time.poll(() => connect(plan)))
  if (stops[0] !== undefined) stop(...stops[0])
  lookForLate()
  if (drainMs === undefined) {
    do await world.pass(400)
    while (openOnes().length > 0 && time.now < startedAt + 20_000)
    world.expect(openOnes().length === 0, 'each connection is closed in the end')
  } else await world.pass(drainMs)
  drain()
  // The longest of the timers is the guard's, and the process may be stopped twice.
  await world.pass(scenario.drainTimeoutMs + LIMITS.guardMs + 3 * MOST_WORK_MS)
  world.expect(cut !== undefined, 'a drain ends')
  world.expect(time.left === 0, 'no timer is left in the end:', time.left)
  world.expect(!house.isGuarded && !http.isGuarded(), 'the guard sleeps in the end')
  for (const client of clients) {
    world.expect(client.bare === client.refusals || client.missesSome, 'each refusal is told of')
    for (const asked of client.asked) check(asked)
  }
}
