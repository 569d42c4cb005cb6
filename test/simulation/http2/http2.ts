// Must be imported before the service, which binds the timers when it is loaded.
import '../virtual-time.ts'
import { connect, constants, createServer, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { createPlantStore, memoryStore, type Store } from '../../../src/index.ts'
import { encodeRstStream } from '../../support/wire/http2-frames.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { mutants } from './mutants.ts'
import { predict } from './predict.ts'
import { SocketEnd } from './socket-pair.ts'
import { scenarios, STEP_MS, type ConnectionPlan, type RequestPlan, type Scenario } from './scenario.ts'

/** Longer than any request takes, including the body timeout and the time to discard the rest of the body. */
const END_MS = 45_000

const { setImmediate: realTick } = globalThis

/** After this many ticks of the real event loop without activity, `node:http2` has nothing more to do. */
const QUIET_TICKS = 3

type TimedAction = readonly [ms: number, act: () => void]

interface SentRequest {
  readonly id: number
  readonly plan: RequestPlan
  readonly connection: ConnectionPlan
  status: number | undefined
  /** The statuses that the service reported. */
  readonly reportedStatuses: number[]
  isOpen: boolean
}

/** Clients that send HTTP/2 requests whose bodies are complete, truncated, of another length, or never end. */
export const http2: SimulatedSystem<Scenario> = { name: 'http2', scenarios, mutants, play }

async function play(scenario: Scenario, world: Simulation): Promise<void> {
  let activity = 0
  const countActivity = (): unknown => activity++

  /** Waits until the real and the simulated event loop have processed all events. */
  async function settle(): Promise<void> {
    for (
      let quiet = 0, previousActivity = -1;
      quiet < QUIET_TICKS;
      quiet = previousActivity === activity ? quiet + 1 : 0
    ) {
      previousActivity = activity
      await world.advance(0)
      await new Promise((resolve) => realTick(resolve))
    }
  }

  const { server, kept, requests, isQuiet } = createTestServer(world, scenario)
  const sessions = scenario.connections.map((plan) => {
    const [clientEnd, serverEnd] = SocketEnd.pair(countActivity)
    server.emit('connection', serverEnd)
    const settings = plan.reads ? {} : { initialWindowSize: 0 }
    const session = connect('http://a', { createConnection: () => clientEnd, settings })
    session.on('error', () => undefined)
    return { plan, session, clientEnd, serverEnd }
  })
  await settle()

  const actions = sessions.flatMap(({ plan, session, clientEnd, serverEnd }): TimedAction[] => {
    const requestActions = plan.requests.flatMap((request) => {
      const sent = {
        id: requests.length,
        plan: request,
        connection: plan,
        status: undefined,
        reportedStatuses: [],
        isOpen: false,
      }
      requests.push(sent)
      if (request.kind === 'delete') kept.add(BigInt(sent.id))
      return createActions(sent, session, serverEnd)
    })
    if (plan.loss === 'FIN') return [...requestActions, [plan.lossMs, () => clientEnd.end()]]
    return plan.loss === 'none' ? requestActions : [...requestActions, [plan.lossMs, () => session.destroy()]]
  })
  actions.sort(([a], [b]) => a - b)
  const startedAt = world.time.now
  for (let ms = 0; ms <= END_MS; ms = Math.min(actions[0]?.[0] ?? Infinity, ms - (ms % STEP_MS) + STEP_MS)) {
    await world.advance(startedAt + ms - world.time.now)
    await settle()
    while (actions.length > 0 && actions[0]![0] <= ms) {
      const [, action] = actions.shift()!
      action()
      await settle()
    }
    const isIdle = isQuiet() && requests.every(({ isOpen }) => !isOpen)
    world.check(!isIdle || world.time.pendingTimerCount === 0, 'no timer is pending once all streams are closed')
  }
  for (const request of requests) checkRequest(world, scenario, request, kept)
  for (const { session } of sessions) session.destroy()
  await settle()
  const isAnyOpen = requests.some(({ isOpen }) => isOpen)
  world.check(!isAnyOpen, 'a stream closes with its connection')
}

/** Returns the timed actions of a client for one request. */
function createActions(sent: SentRequest, session: ClientHttp2Session, serverEnd: SocketEnd): TimedAction[] {
  const { endMs, end, pieces, startSteps } = sent.plan
  const body = `{"id":${sent.id},"name":"plant ${sent.id}"}`
  const startMs = startSteps * STEP_MS
  let stream: ClientHttp2Stream | undefined
  let sentBytes = 0

  function start(): void {
    if (session.destroyed) return
    stream = session.request(createHeaders(sent, body.length), { endStream: false })
    stream.on('error', () => undefined).on('response', (headers) => (sent.status = headers[':status']))
    if (sent.connection.reads) stream.resume()
  }
  function sendChunk(): void {
    if (stream?.writable === true) stream.write(body.slice(sentBytes, (sentBytes += 5)))
  }
  function finish(): void {
    if (stream?.writable !== true) return
    if (end === 'complete') stream.end(body.slice(sentBytes))
    else if (end === 'no END_STREAM') stream.write(body.slice(sentBytes))
    // Node's client would send END_STREAM before RST_STREAM.
    else if (end === 'reset') serverEnd.push(encodeRstStream(constants.NGHTTP2_CANCEL, stream.id))
  }
  const sendChunkActions = pieces.filter((ms) => ms < endMs).map((ms): TimedAction => [startMs + ms, sendChunk])
  return [[startMs, start], ...sendChunkActions, [startMs + endMs, finish]]
}

function createHeaders({ id, plan }: SentRequest, length: number): Record<string, string | number> {
  const { kind, surplus } = plan
  return {
    ':method': { create: 'POST', refused: 'POST', delete: 'DELETE', list: 'GET' }[kind],
    ':path': kind === 'delete' ? `/plants/${id}` : '/plants?limit=1',
    authorization: `Bearer ${kind === 'refused' ? 'wrong' : 'ada'}`,
    'content-type': 'application/json',
    'x-number': id,
    ...(surplus !== undefined && { 'content-length': length + surplus }),
  }
}

function checkRequest(world: Simulation, scenario: Scenario, request: SentRequest, kept: ReadonlySet<bigint>): void {
  const { id, plan, connection, status, reportedStatuses, isOpen } = request
  const expected = predict(plan, connection, scenario)
  world.log('request', id, plan, connection.loss, connection.lossMs, 'status', status, 'reported', reportedStatuses)
  world.check(status === expected.status, 'a request gets the predicted status:', id, expected.status)
  if (plan.kind === 'create' || plan.kind === 'delete') {
    const isApplied = kept.has(BigInt(id)) === (plan.kind === 'create')
    world.check(isApplied === expected.isApplied, 'a write is applied exactly if its body is complete in time:', id)
    const reports = expected.isApplied || expected.status !== undefined ? 1 : 0
    world.check(
      reportedStatuses.length === reports,
      'an ignored request is not reported, and every other request is reported once:',
      id,
    )
  }
  // If the client doesn't read the response to a complete request, the host has to close the stream.
  const mayStayOpen =
    !connection.reads && (plan.kind === 'list' || plan.end === 'complete') && connection.loss === 'none'
  world.check(!isOpen || mayStayOpen, 'a stream is closed after its response:', id)
}

function createTestServer(world: Simulation, { tokenSteps, storeSteps }: Scenario) {
  const storedIds = new Set<bigint>()
  const requests: SentRequest[] = []
  let pendingCalls = 0

  function respondAfterSteps<T>(steps: number, action: () => T): T | Promise<T> {
    if (steps === 0) return action()
    pendingCalls++
    return new Promise((resolve) => {
      world.time.schedule(steps * STEP_MS, () => {
        pendingCalls--
        resolve(action())
      })
    })
  }
  const store: Store = {
    ...memoryStore(),
    create: (_, { id }) => respondAfterSteps(storeSteps, () => storedIds.add(id).size > 0),
    delete: (_, id) => respondAfterSteps(storeSteps, () => storedIds.delete(id)),
    list: () => respondAfterSteps(storeSteps, () => ({ plants: [], hasMore: false })),
  }
  const findRequest = (headers: Readonly<Record<string, unknown>>): SentRequest =>
    requests[Number(headers['x-number'])]!
  const plants = createPlantStore({
    store,
    authenticate: (token) => respondAfterSteps(tokenSteps, () => (token === 'ada' ? token : null)),
    onResponse: ({ request, status }) => findRequest(request.headers).reportedStatuses.push(status),
    onError: (error) => world.check(false, 'onError is not called:', error),
  })
  const server = createServer((request, response) => {
    const sent = findRequest(request.headers)
    sent.isOpen = true
    request.stream.once('close', () => (sent.isOpen = false))
    plants(request, response)
  })
  server.on('sessionError', () => undefined)
  return { server, kept: storedIds, requests, isQuiet: () => pendingCalls === 0 }
}
