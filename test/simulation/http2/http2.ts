// First, as the service keeps the timers that it finds.
import '../virtual-time.ts'
import { connect, constants, createServer, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { createPlantStore, memoryStore, type Store } from '../../../src/index.ts'
import { rstStream } from '../../support/wire/http2-frames.ts'
import type { Part, World } from '../simulation.ts'
import { faults } from './faults.ts'
import { predict } from './model.ts'
import { End } from './pair.ts'
import { scenarios, STEP_MS, type ConnectionPlan, type RequestPlan, type Scenario } from './scenario.ts'

/** Longer than any request can take: its last byte, or the timeout of its body, and the discarding of the rest. */
const END_MS = 45_000

const { setImmediate: realTick } = globalThis

/** How many ticks of the real event loop without activity mean that `node:http2` has nothing more to do. */
const QUIET_TICKS = 3

type Act = readonly [ms: number, act: () => void]

interface Sent {
  readonly id: number
  readonly plan: RequestPlan
  readonly connection: ConnectionPlan
  status: number | undefined
  /** The statuses that the service reported. */
  readonly reported: number[]
  isOpen: boolean
}

/** Clients that send HTTP/2 requests whose bodies are complete, truncated, of another length, or never end. */
export const http2: Part<Scenario> = { name: 'http2', scenarios, faults, play }

async function play(scenario: Scenario, world: World): Promise<void> {
  let activity = 0
  const noteActivity = (): unknown => activity++

  /** Waits until all that has happened is processed, in the real event loop and in that of the simulation. */
  async function settle(): Promise<void> {
    for (let quiet = 0, before = -1; quiet < QUIET_TICKS; quiet = before === activity ? quiet + 1 : 0) {
      before = activity
      await world.pass(0)
      await new Promise((resolve) => realTick(resolve))
    }
  }

  const { server, kept, requests, isQuiet } = openService(world, scenario)
  const sessions = scenario.connections.map((plan) => {
    const [clientEnd, serverEnd] = End.pair(noteActivity)
    server.emit('connection', serverEnd)
    const settings = plan.reads ? {} : { initialWindowSize: 0 }
    const session = connect('http://a', { createConnection: () => clientEnd, settings })
    session.on('error', () => undefined)
    return { plan, session, clientEnd, serverEnd }
  })
  await settle()

  const acts = sessions.flatMap(({ plan, session, clientEnd, serverEnd }): Act[] => {
    const requestActs = plan.requests.flatMap((request) => {
      const sent = {
        id: requests.length,
        plan: request,
        connection: plan,
        status: undefined,
        reported: [],
        isOpen: false,
      }
      requests.push(sent)
      if (request.kind === 'delete') kept.add(BigInt(sent.id))
      return actsOf(sent, session, serverEnd)
    })
    if (plan.loss === 'FIN') return [...requestActs, [plan.lossMs, () => clientEnd.end()]]
    return plan.loss === 'none' ? requestActs : [...requestActs, [plan.lossMs, () => session.destroy()]]
  })
  acts.sort(([a], [b]) => a - b)
  const startedAt = world.time.now
  for (let ms = 0; ms <= END_MS; ms = Math.min(acts[0]?.[0] ?? Infinity, ms - (ms % STEP_MS) + STEP_MS)) {
    await world.pass(startedAt + ms - world.time.now)
    await settle()
    while (acts.length > 0 && acts[0]![0] <= ms) {
      const [, act] = acts.shift()!
      act()
      await settle()
    }
    const isIdle = isQuiet() && requests.every(({ isOpen }) => !isOpen)
    world.expect(!isIdle || world.time.left === 0, 'no timer is left once all streams are closed')
  }
  for (const request of requests) check(world, scenario, request, kept)
  for (const { session } of sessions) session.destroy()
  await settle()
  const isAnyOpen = requests.some(({ isOpen }) => isOpen)
  world.expect(!isAnyOpen, 'a stream closes with its connection')
}

/** What a client does for one request, and when. */
function actsOf(sent: Sent, session: ClientHttp2Session, serverEnd: End): Act[] {
  const { endMs, end, pieces, startSteps } = sent.plan
  const body = `{"id":${sent.id},"name":"plant ${sent.id}"}`
  const startMs = startSteps * STEP_MS
  let stream: ClientHttp2Stream | undefined
  let sentBytes = 0

  function start(): void {
    if (session.destroyed) return
    stream = session.request(headersOf(sent, body.length), { endStream: false })
    stream.on('error', () => undefined).on('response', (headers) => (sent.status = headers[':status']))
    if (sent.connection.reads) stream.resume()
  }
  function sendPiece(): void {
    if (stream?.writable === true) stream.write(body.slice(sentBytes, (sentBytes += 5)))
  }
  function finish(): void {
    if (stream?.writable !== true) return
    if (end === 'complete') stream.end(body.slice(sentBytes))
    else if (end === 'no END_STREAM') stream.write(body.slice(sentBytes))
    // Node's client would end the body before it resets the stream.
    else if (end === 'reset') serverEnd.push(rstStream(constants.NGHTTP2_CANCEL, stream.id))
  }
  const sendsPieces = pieces.filter((ms) => ms < endMs).map((ms): Act => [startMs + ms, sendPiece])
  return [[startMs, start], ...sendsPieces, [startMs + endMs, finish]]
}

function headersOf({ id, plan }: Sent, length: number): Record<string, string | number> {
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

function check(world: World, scenario: Scenario, request: Sent, kept: ReadonlySet<bigint>): void {
  const { id, plan, connection, status, reported, isOpen } = request
  const expected = predict(plan, connection, scenario)
  world.tell('request', id, plan, connection.loss, connection.lossMs, 'status', status, 'reported', reported)
  world.expect(
    status === expected.status,
    'a request gets the status that its body and its token deserve:',
    id,
    expected.status,
  )
  if (plan.kind === 'create' || plan.kind === 'delete') {
    const isDone = kept.has(BigInt(id)) === (plan.kind === 'create')
    world.expect(isDone === expected.isDone, 'a write happens if its body is complete in time, and only then:', id)
    const reports = expected.isDone || expected.status !== undefined ? 1 : 0
    world.expect(reported.length === reports, 'a request that leaves no trace is not reported, and others once:', id)
  }
  // A complete request whose response nobody reads is a matter of the host.
  const canStay = !connection.reads && (plan.kind === 'list' || plan.end === 'complete') && connection.loss === 'none'
  world.expect(!isOpen || canStay, 'a stream is closed after its response:', id)
}

function openService(world: World, { tokenSteps, storeSteps }: Scenario) {
  const kept = new Set<bigint>()
  const requests: Sent[] = []
  let pending = 0

  function answer<T>(steps: number, act: () => T): T | Promise<T> {
    if (steps === 0) return act()
    pending++
    return new Promise((resolve) => {
      world.time.after(steps * STEP_MS, () => {
        pending--
        resolve(act())
      })
    })
  }
  const store: Store = {
    ...memoryStore(),
    create: (_, { id }) => answer(storeSteps, () => kept.add(id).size > 0),
    delete: (_, id) => answer(storeSteps, () => kept.delete(id)),
    list: () => answer(storeSteps, () => ({ plants: [], hasMore: false })),
  }
  const requestOf = (headers: Readonly<Record<string, unknown>>): Sent => requests[Number(headers['x-number'])]!
  const plants = createPlantStore({
    store,
    authenticate: (token) => answer(tokenSteps, () => (token === 'ada' ? token : null)),
    onResponse: ({ request, status }) => requestOf(request.headers).reported.push(status),
    onError: (error) => world.expect(false, 'the host is told of no error:', error),
  })
  const server = createServer((request, response) => {
    const sent = requestOf(request.headers)
    sent.isOpen = true
    request.stream.once('close', () => (sent.isOpen = false))
    plants(request, response)
  })
  server.on('sessionError', () => undefined)
  return { server, kept, requests, isQuiet: () => pending === 0 }
}
