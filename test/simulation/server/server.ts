import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createHttpServer, type HttpServer } from '../../../src/http-server/http-server.ts'
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
export const server: Part<Scenario> = {
  name: 'server',
  scenarios,
  faults,
  play: (scenario, world) => new ServerSimulation(scenario, world).play(),
}

/** The request in whose context the service works. */
const current = new AsyncLocalStorage<Asked>()

class ServerSimulation {
  readonly #scenario: Scenario
  readonly #world: World
  readonly #plants: Plants
  readonly #http: HttpServer
  readonly #clients: Client[] = []
  readonly #requests = new Map<number, Asked>()
  readonly #house: House = { ...LIMITS, isGuarded: false, isDraining: false, isCutting: false, requests: 0 }
  #cut: number | undefined
  #isListening = true
  #lateOnes = new Set<unknown>()
  /** When the drain begins, and whom it waits for. */
  #drainAt = Infinity
  #awaited: readonly Client[] = []

  constructor(scenario: Scenario, world: World) {
    this.#scenario = scenario
    this.#world = world
    this.#plants = new Plants(world, scenario.fates, () => current.getStore()!)
    const service = createPlantStore({
      store: this.#plants,
      authenticate: (token) => this.#plants.authenticate(token),
      storeTimeoutMs: STORE_TIMEOUT_MS,
      onError: () => undefined,
      onResponse: ({ request, status }) => this.#told(request as IncomingMessage, status),
    })
    this.#http = createHttpServer(
      (request, response) => current.run(this.#askedOf(request), () => service(request, response)),
      { ...LIMITS, drainTimeoutMs: scenario.drainTimeoutMs },
      undefined,
      {
        onRequest: (request, response) => this.#begin(request, response),
        onRefusal: (_, { socket }) => this.#clientOf(socket).refusals++,
        onGuard: (isAwake) => this.#guard(isAwake),
        onAnswer: ({ request, status }) => this.#told(request as IncomingMessage, status),
      },
    )
    const { server } = this.#http
    // Node looks for late requests by the clock of the system, and knows idle connections by where they are in memory.
    Object.assign(server, { headersTimeout: 0, requestTimeout: 0, closeIdleConnections: () => this.#closeIdle() })
    Object.assign(server, { _handle: { close: () => this.#stopListening() } })
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      server.prependListener(event, ({ socket }: IncomingMessage) => this.#announce(this.#clientOf(socket)))
    }
    server.emit('listening')
    world.atEnd(() => this.#end())
  }

  #clientOf(socket: unknown): Client {
    return this.#clients.find(({ wire }) => wire === socket)!
  }

  #askedOf({ url }: IncomingMessage): Asked {
    return this.#requests.get(Number(url!.split('n=')[1]))!
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const number = Number(request.url!.split('n=')[1])
    response.setHeader('X-Number', number)
    this.#requests.set(number, this.#clientOf(request.socket).begin(number, response))
  }

  /** Node announces a request. */
  #announce(client: Client): void {
    const isFull = this.#isFull(this.#open.filter(({ wire }) => !wire.writableEnded))
    this.#world.expect(!isFull || this.#http.isGuarded(), 'the guard wakes while many requests wait')
    client.announced++
    this.#world.expect(
      !client.isSliced || client.waiting <= MAX_IN_SLICE,
      'while the guard is awake, few requests wait',
    )
  }

  #guard(isAwake: boolean): void {
    this.#world.tell('guard', isAwake ? 'wakes' : 'sleeps')
    this.#house.isGuarded = isAwake
    const isBusy = this.#isFull(this.#open) || this.#plants.hasWorked
    this.#world.expect(!isAwake || isBusy, 'the guard sleeps while few requests wait')
  }

  /** Whether more requests wait than may. */
  #isFull(clients: readonly Client[]): boolean {
    return clients.reduce((sum, { waiting }) => sum + waiting, 0) > MAX_WAITING
  }

  get #slackMs(): number {
    return this.#plants.hasWorked ? MOST_WORK_MS : 10
  }

  #told(request: IncomingMessage, status: number): void {
    const asked = this.#askedOf(request)
    this.#world.expect(asked.told === undefined, 'each answer is told of once:', asked.number)
    asked.told = status
  }

  get #open(): Client[] {
    return this.#clients.filter(({ wire }) => !wire.destroyed)
  }

  #connect(plan: Plan): void {
    if (!this.#isListening) return
    const { server } = this.#http
    const client = new Client(this.#world, this.#house, plan)
    this.#clients.push(client)
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
  #stop(ms: number, forMs: number): void {
    this.#world.time.after(ms, () => {
      this.#world.tell('stops for', forMs)
      this.#plants.hasWorked = true
      this.#world.time.work(forMs)
    })
  }

  #closeIdle(): void {
    for (const { isIdle, wire } of this.#open) if (isIdle) wire.destroy()
  }

  #lookForLate(): void {
    const { headersTimeoutMs, requestTimeoutMs } = LIMITS
    for (const client of this.#open) {
      const { current, openedAt, read, wire } = client
      const since = read === 0 ? openedAt : current?.readAt
      const asked = read === 0 ? client : current
      if (since === undefined || this.#lateOnes.has(asked)) continue
      const isHeadThere = read > 0 && current!.headEnd <= read
      if (this.#world.time.now - since <= (isHeadThere ? requestTimeoutMs : headersTimeoutMs)) continue
      this.#lateOnes.add(asked)
      this.#world.tell('late', current?.number)
      const error = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
      this.#http.server.emit('clientError', error, wire)
    }
    if (this.#cut === undefined) this.#world.time.after(LIMITS.checkIntervalMs, () => this.#lookForLate())
  }

  #drain(): void {
    const { time } = this.#world
    this.#world.tell('drain')
    this.#house.isDraining = true
    this.#drainAt = time.now
    this.#awaited = this.#scenario.isShared ? this.#open : this.#clients
    let left = 0
    const late = this.#scenario.stops[1]
    if (late !== undefined) this.#stop(0.8 * this.#scenario.drainTimeoutMs + (late[0] % 30), late[1])
    time.after(this.#scenario.drainTimeoutMs, () => {
      this.#house.isCutting = true
      left = this.#open.length
    })
    void this.#http.drain(this.#scenario.isShared).then((cut) => {
      this.#world.tell('drained', cut)
      this.#world.expect(this.#open.length === 0, 'after a drain no connection is open')
      const inTime = this.#world.time.now <= this.#drainAt + this.#scenario.drainTimeoutMs + this.#slackMs
      this.#world.expect(inTime, 'a drain ends in its time')
      this.#world.expect(cut === left, 'a drain says how many connections it has cut:', cut, left)
      this.#cut = cut
    })
  }

  #stopListening(): void {
    this.#world.tell('stops listening')
    this.#isListening = false
    const { now } = this.#world.time
    const quietMs = now - Math.max(this.#drainAt, ...this.#awaited.map(({ closedAt }) => closedAt))
    const isLate = now >= this.#drainAt + 0.8 * this.#scenario.drainTimeoutMs
    this.#world.expect(isLate || quietMs >= 50, 'a drain listens until no connection was open for a moment:', quietMs)
    this.#world.expect(quietMs < 50 + this.#slackMs || quietMs === -Infinity, 'a drain goes on after that:', quietMs)
  }

  async play(): Promise<void> {
    const { plans, drainMs, floods, stops } = this.#scenario
    const { time } = this.#world
    const startedAt = time.now
    for (const plan of [...floodsOf(floods), ...plans]) time.after(plan.ms, () => this.#connect(plan))
    if (stops[0] !== undefined) this.#stop(...stops[0])
    this.#lookForLate()
    if (drainMs === undefined) {
      do await this.#world.pass(400)
      while (this.#open.length > 0 && time.now < startedAt + 20_000)
      this.#world.expect(this.#open.length === 0, 'each connection is closed in the end')
    } else await this.#world.pass(drainMs)
    this.#drain()
    // The longest of the timers is the guard's.
    await this.#world.pass(this.#scenario.drainTimeoutMs + LIMITS.guardMs + MOST_WORK_MS)
    this.#world.expect(this.#cut !== undefined, 'a drain ends')
    this.#world.expect(time.left === 0, 'no timer is left in the end:', time.left)
    for (const client of this.#clients) {
      this.#world.expect(client.bare === client.refusals || client.missesSome, 'each refusal is told of')
      for (const asked of client.asked) this.#check(asked)
    }
  }

  #check({ number, kind, answer, told, wholeAt }: Asked): void {
    const { kept } = this.#plants
    const status = answer! > 999 ? Math.trunc(answer! / 100) : answer
    this.#world.expect(told === undefined || answer === undefined || told === status, 'what is told is so:', number)
    if (KINDS[kind]!.line !== 'POST /plants') return
    const isKept = kept.has(BigInt(number))
    const isUnknown = answer === 50301 || (answer === undefined && wholeAt !== undefined)
    this.#world.expect(isUnknown || isKept === (answer === 200), 'what is acknowledged is kept, and no more:', number)
  }

  /** Leaves nothing to the next simulation. */
  async #end(): Promise<void> {
    const { time } = this.#world
    for (const { wire } of this.#open) wire.destroy()
    await time.passUntil(time.now, () => false)
    current.disable()
  }
}
