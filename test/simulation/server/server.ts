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

/** The overload guard activates beyond this number of queued requests. */
const MAX_QUEUED = 100
/** While the guard is active, at most this number of requests are queued per connection. */
const MAX_QUEUED_THROTTLED = 56

/** The maximum duration of a tick. */
const MAX_WORK_MS = 900

/** The HTTP server with the service, and clients on in-memory connections. */
export const server: SimulatedSystem<Scenario> = { name: 'server', scenarios, mutants, play }

/** The request that the service is handling. */
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
  let openAtTimeout = 0
  /** Clients that connect after the drain timeout. They may disconnect before the drain destroys them. */
  let lateClients = 0
  const timedOutRequests = new Set<unknown>()
  let drainStartedAt = Infinity
  /** The clients that the drain waits for before it stops listening. */
  let awaitedClients: readonly Client[] = []
  /** Total time that the process was suspended. */
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
  // Node's own checks for late requests use the system clock, and its list of idle connections depends on memory
  // addresses.
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

  /** Called for each request that Node emits, before the server under test handles it. */
  function onRequestEvent(client: Client): void {
    const mustBeActive = isOverloaded(getOpenClients().filter(({ wire }) => !wire.writableEnded))
    world.check(!mustBeActive || serverState.isThrottled, 'the guard is active while many requests are queued')
    client.onRequestEvent()
    world.check(
      !client.isReadThrottled || client.queuedCount <= MAX_QUEUED_THROTTLED,
      'while the guard is active, few requests per connection are queued',
    )
  }

  function onOverloadChange(isActive: boolean): void {
    world.log('guard', isActive ? 'active' : 'inactive')
    world.check(serverState.isThrottled !== isActive, 'the guard reports changes only')
    serverState.isThrottled = isActive
    const isBusy = isOverloaded(getOpenClients()) || plants.hasBlocked
    world.check(!isActive || isBusy, 'the guard does not activate while few requests are queued')
  }

  /** Whether enough requests are queued to activate the guard. */
  function isOverloaded(clients: readonly Client[]): boolean {
    return clients.reduce((sum, { queuedCount }) => sum + queuedCount, 0) > MAX_QUEUED
  }

  function getToleranceMs(): number {
    return pausedMs + (plants.hasBlocked ? MAX_WORK_MS : 10)
  }

  function recordReportedStatus(request: IncomingMessage, status: number): void {
    const sentRequest = findRequest(request)
    world.check(sentRequest.reportedStatus === undefined, 'each response is reported once:', sentRequest.number)
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
    // Like `net.Server`.
    const counted = server as unknown as { _connections: number; _emitCloseIfDrained(): void }
    counted._connections++
    wire.once('close', () => {
      counted._connections--
      counted._emitCloseIfDrained()
    })
    server.emit('connection', wire)
    wire.prependListener('data', ({ length }: Buffer) => client.onServerRead(length))
  }

  /** Suspends the process for a while. The clients continue. */
  function pauseProcess(ms: number, forMs: number): void {
    time.schedule(ms, () => {
      world.log('process suspended for', forMs)
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
      const { current, openedAt, readBytes, wire } = client
      const waitingSince = readBytes === 0 ? openedAt : current?.firstByteReadAt
      const subject = readBytes === 0 ? client : current
      if (waitingSince === undefined || timedOutRequests.has(subject)) continue
      const hasReadHeader = readBytes > 0 && current!.headerEnd <= readBytes
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
      world.check(getOpenClients().length === 0, 'no connection is open after a drain')
      const isInTime = time.now <= drainStartedAt + scenario.drainTimeoutMs + getToleranceMs()
      world.check(isInTime, 'a drain ends before the drain timeout')
      const isCorrectCount = count >= openAtTimeout && count <= openAtTimeout + lateClients
      world.check(isCorrectCount, 'a drain reports how many connections it destroyed:', count, openAtTimeout)
      closedCount = count
    })
  }

  function stopListening(): void {
    world.log('stops listening')
    isListening = false
    const { now } = time
    const quietMs = now - Math.max(drainStartedAt, ...awaitedClients.map(({ closedAt }) => closedAt))
    const isLate = now >= drainStartedAt + 0.8 * scenario.drainTimeoutMs
    world.check(isLate || quietMs >= 50, 'a drain listens until no connection has been open for 50 ms:', quietMs)
    world.check(
      quietMs < 50 + getToleranceMs() || quietMs === -Infinity,
      'a drain then stops listening without delay:',
      quietMs,
    )
  }

  function checkRequest({ number, kind, receivedCode, reportedStatus, lastByteSentAt }: SentRequest): void {
    const status = receivedCode! > 999 ? Math.trunc(receivedCode! / 100) : receivedCode
    const isReportCorrect = reportedStatus === undefined || receivedCode === undefined || reportedStatus === status
    world.check(isReportCorrect, 'the reported status is the one that was sent:', number)
    if (REQUEST_KINDS[kind]!.line !== 'POST /plants') return
    const isStored = plants.storedIds.has(BigInt(number))
    const isUnknown = receivedCode === 50301 || (receivedCode === undefined && lastByteSentAt !== undefined)
    world.check(isUnknown || isStored === (receivedCode === 200), 'exactly the acknowledged plants are stored:', number)
  }

  /** Leaves no state for the next scenario. */
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
    world.check(getOpenClients().length === 0, 'every connection closes eventually')
  } else await world.advance(drainMs)
  startDrain()
  // The guard's timer is the longest, and the process may be suspended twice.
  await world.advance(scenario.drainTimeoutMs + LIMITS.guardCooldownMs + 3 * MAX_WORK_MS)
  world.check(closedCount !== undefined, 'a drain ends')
  world.check(time.pendingTimerCount === 0, 'no timer is left at the end:', time.pendingTimerCount)
  world.check(!serverState.isThrottled && !http.isThrottled(), 'the guard is inactive at the end')
  for (const client of clients) {
    world.check(
      client.receivedRejections === client.reportedRejections || client.mayHaveMissedData,
      'each rejection is reported',
    )
    for (const request of client.requests) checkRequest(request)
  }
}
