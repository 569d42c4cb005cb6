import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createHttpServer } from '../../../src/http-server/http-server.ts'
import { createPlantStore } from '../../../src/index.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { Client } from './client.ts'
import type { SentRequest, ServerState } from './connection-checker.ts'
import { mutants } from './mutants.ts'
import { REQUEST_KINDS } from './requests.ts'
import { FaultyStore, STORE_TIMEOUT_MS } from './faulty-store.ts'
import { createFloods, scenarios, type Plan, type Scenario } from './scenario.ts'

const LIMITS = {
  headersTimeoutMs: 250,
  requestTimeoutMs: 500,
  keepAliveTimeoutMs: 100,
  stallTimeoutMs: 180,
  checkIntervalMs: 90,
  guardCooldownMs: 3000,
}

/** When the guard wakes, and how many requests of a connection then wait. */
const MAX_WAITING = 100
const MAX_WAITING_THROTTLED = 56

/** How long a round may take. */
const MAX_WORK_MS = 900

/** The server of the program, and clients whose connections are in memory. */
export const server: SimulatedSystem<Scenario> = { name: 'server', scenarios, mutants, play }

/** The request in whose context the service works. */
const requestContext = new AsyncLocalStorage<SentRequest>()

async function play(scenario: Scenario, world: Simulation): Promise<void> {
  const { time } = world
  const clients: Client[] = []
  const requests = new Map<number, SentRequest>()
  const serverState: ServerState = {
    ...LIMITS,
    isThrottled: false,
    isDraining: false,
    isAborting: false,
    requestCount: 0,
  }
  let closedCount: number | undefined
  let isListening = true
  /** How many connections a drain cuts, beside those that come late: they may end before. */
  let openAtTimeout = 0
  let lateClients = 0
  const timedOutRequests = new Set<unknown>()
  /** When the drain begins, and whom it waits for. */
  let drainStartedAt = Infinity
  let awaitedClients: readonly Client[] = []
  /** How long the process was stopped. */
  let pausedMs = 0

  const plants = new FaultyStore(world, scenario.faults, () => requestContext.getStore()!)
  const service = createPlantStore({
    store: plants,
    authenticate: (token) => plants.authenticate(token),
    storeTimeoutMs: STORE_TIMEOUT_MS,
    onError: () => undefined,
    onResponse: ({ request, status }) => recordReportedStatus(request as IncomingMessage, status),
  })
  const http = createHttpServer(
    (request, response) => requestContext.run(findRequest(request), () => service(request, response)),
    { ...LIMITS, drainTimeoutMs: scenario.drainTimeoutMs },
    undefined,
    {
      onRequest: startRequest,
      onRejection: (_, { socket }) => findClient(socket).reportedRejections++,
      onOverloadChange,
      onResponse: ({ request, status }) => recordReportedStatus(request as IncomingMessage, status),
    },
  )
  const { server } = http
  // Node looks for late requests by the clock of the system, and knows idle connections by where they are in memory.
  Object.assign(server, { headersTimeout: 0, requestTimeout: 0, closeIdleConnections })
  Object.assign(server, { _handle: { close: stopListening } })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.prependListener(event, ({ socket }: IncomingMessage) => onRequestEvent(findClient(socket)))
  }
  server.emit('listening')
  world.addCleanup(cleanUp)

  function findClient(socket: unknown): Client {
    return clients.find(({ wire }) => wire === socket)!
  }

  function findRequest({ url }: IncomingMessage): SentRequest {
    return requests.get(Number(url!.split('n=')[1]))!
  }

  function startRequest(request: IncomingMessage, response: ServerResponse): void {
    const number = Number(request.url!.split('n=')[1])
    response.setHeader('X-Number', number)
    requests.set(number, findClient(request.socket).startRequest(number, response))
  }

  /** Node announces a request. */
  function onRequestEvent(client: Client): void {
    const mustWake = isOverloaded(getOpenClients().filter(({ wire }) => !wire.writableEnded))
    world.check(!mustWake || serverState.isThrottled, 'the guard wakes while many requests wait')
    client.onRequestEvent()
    world.check(
      !client.isReadThrottled || client.queuedCount <= MAX_WAITING_THROTTLED,
      'while the guard is awake, few requests wait',
    )
  }

  function onOverloadChange(isActive: boolean): void {
    world.log('guard', isActive ? 'wakes' : 'sleeps')
    world.check(serverState.isThrottled !== isActive, 'the guard tells of changes')
    serverState.isThrottled = isActive
    const isBusy = isOverloaded(getOpenClients()) || plants.hasBlocked
    world.check(!isActive || isBusy, 'the guard sleeps while few requests wait')
  }

  /** Whether more requests wait than may. */
  function isOverloaded(clients: readonly Client[]): boolean {
    return clients.reduce((sum, { queuedCount: waiting }) => sum + waiting, 0) > MAX_WAITING
  }

  function getToleranceMs(): number {
    return pausedMs + (plants.hasBlocked ? MAX_WORK_MS : 10)
  }

  function recordReportedStatus(request: IncomingMessage, status: number): void {
    const sentRequest = findRequest(request)
    world.check(sentRequest.reportedStatus === undefined, 'each answer is told of once:', sentRequest.number)
    sentRequest.reportedStatus = status
  }

  function getOpenClients(): Client[] {
    return clients.filter(({ wire }) => !wire.destroyed)
  }

  function openClient(plan: Plan): void {
    if (!isListening) return
    const client = new Client(world, serverState, plan)
    clients.push(client)
    if (serverState.isAborting) lateClients++
    const { wire } = client
    // What `net` does.
    const counted = server as unknown as { _connections: number; _emitCloseIfDrained(): void }
    counted._connections++
    wire.once('close', () => {
      counted._connections--
      counted._emitCloseIfDrained()
    })
    server.emit('connection', wire)
    wire.prependListener('data', ({ length }: Buffer) => client.onServerRead(length))
  }

  /** The process is stopped for a while, and its clients go on. */
  function pauseProcess(ms: number, forMs: number): void {
    time.schedule(ms, () => {
      world.log('stops for', forMs)
      pausedMs += forMs
      plants.hasBlocked = true
      time.simulateWork(forMs)
    })
  }

  function closeIdleConnections(): void {
    for (const { isIdle, wire } of getOpenClients()) if (isIdle) wire.destroy()
  }

  function checkTimeouts(): void {
    const { headersTimeoutMs, requestTimeoutMs } = LIMITS
    for (const client of getOpenClients()) {
      const { current, openedAt, readBytes: read, wire } = client
      const waitingSince = read === 0 ? openedAt : current?.firstByteReadAt
      const subject = read === 0 ? client : current
      if (waitingSince === undefined || timedOutRequests.has(subject)) continue
      const hasReadHeader = read > 0 && current!.headerEnd <= read
      if (time.now - waitingSince <= (hasReadHeader ? requestTimeoutMs : headersTimeoutMs)) continue
      timedOutRequests.add(subject)
      world.log('late', current?.number)
      const error = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
      server.emit('clientError', error, wire)
    }
    if (closedCount === undefined) time.schedule(LIMITS.checkIntervalMs, checkTimeouts)
  }

  function startDrain(): void {
    world.log('drain')
    serverState.isDraining = true
    drainStartedAt = time.now
    awaitedClients = scenario.isPortShared ? getOpenClients() : clients
    const pause = scenario.stops[1]
    if (pause !== undefined) pauseProcess(0.8 * scenario.drainTimeoutMs + (pause[0] % 30), pause[1])
    time.schedule(scenario.drainTimeoutMs, () => {
      serverState.isAborting = true
      openAtTimeout = getOpenClients().length
    })
    void http.drain(scenario.isPortShared).then((count) => {
      world.log('drained', count)
      world.check(getOpenClients().length === 0, 'after a drain no connection is open')
      const isInTime = time.now <= drainStartedAt + scenario.drainTimeoutMs + getToleranceMs()
      world.check(isInTime, 'a drain ends in its time')
      const isCorrectCount = count >= openAtTimeout && count <= openAtTimeout + lateClients
      world.check(isCorrectCount, 'a drain says how many connections it has cut:', count, openAtTimeout)
      closedCount = count
    })
  }

  function stopListening(): void {
    world.log('stops listening')
    isListening = false
    const { now } = time
    const quietMs = now - Math.max(drainStartedAt, ...awaitedClients.map(({ closedAt }) => closedAt))
    const isLate = now >= drainStartedAt + 0.8 * scenario.drainTimeoutMs
    world.check(isLate || quietMs >= 50, 'a drain listens until no connection was open for a moment:', quietMs)
    world.check(quietMs < 50 + getToleranceMs() || quietMs === -Infinity, 'a drain goes on after that:', quietMs)
  }

  function checkRequest({
    number,
    kind,
    receivedCode: answer,
    reportedStatus: told,
    lastByteSentAt: wholeAt,
  }: SentRequest): void {
    const { storedIds: kept } = plants
    const status = answer! > 999 ? Math.trunc(answer! / 100) : answer
    world.check(told === undefined || answer === undefined || told === status, 'what is told is so:', number)
    if (REQUEST_KINDS[kind]!.line !== 'POST /plants') return
    const isKept = kept.has(BigInt(number))
    const isUnknown = answer === 50301 || (answer === undefined && wholeAt !== undefined)
    world.check(isUnknown || isKept === (answer === 200), 'what is acknowledged is kept, and no more:', number)
  }

  /** Leaves nothing to the next simulation. */
  async function cleanUp(): Promise<void> {
    for (const { wire } of getOpenClients()) wire.destroy()
    await time.advanceTo(time.now, () => false)
    requestContext.disable()
  }

  const { plans, drainMs, floods, stops } = scenario
  const startedAt = time.now
  for (const plan of [...createFloods(floods), ...plans])
    time.schedule(plan.ms, () => time.scheduleIo(() => openClient(plan)))
  if (stops[0] !== undefined) pauseProcess(...stops[0])
  checkTimeouts()
  if (drainMs === undefined) {
    do await world.advance(400)
    while (getOpenClients().length > 0 && time.now < startedAt + 20_000)
    world.check(getOpenClients().length === 0, 'each connection is closed in the end')
  } else await world.advance(drainMs)
  startDrain()
  // The longest of the timers is the guard's, and the process may be stopped twice.
  await world.advance(scenario.drainTimeoutMs + LIMITS.guardCooldownMs + 3 * MAX_WORK_MS)
  world.check(closedCount !== undefined, 'a drain ends')
  world.check(time.pendingTimerCount === 0, 'no timer is left in the end:', time.pendingTimerCount)
  world.check(!serverState.isThrottled && !http.isThrottled(), 'the guard sleeps in the end')
  for (const client of clients) {
    world.check(
      client.receivedRejections === client.reportedRejections || client.mayHaveMissedData,
      'each refusal is told of',
    )
    for (const request of client.requests) checkRequest(request)
  }
}
