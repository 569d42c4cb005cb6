// This module must be imported before the service, which captures the timer functions when it's loaded.
import '../virtual-time.ts'
import { toFetchResponse, toReqRes } from 'fetch-to-node'
import { createPlantClient, type PlantClient } from '../../../src/client/plant-client.ts'
import { createPlantStore, memoryStore, type PlantStore } from '../../../src/index.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { CallChecker, type Call } from './call-checker.ts'
import { mutants } from './mutants.ts'
import { scenarios, type Event, type Fault, type Scenario } from './scenario.ts'

/**
 * A client that reaches the service through a proxy, which closes connections, and delays, repeats and replaces
 * messages.
 */
export const client: SimulatedSystem<Scenario> = { name: 'client', scenarios, mutants, play }

/** Longer than any call can take with all its attempts, even a list with several pages. */
const MAX_CALL_MS = 20 * 60_000

interface Reply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

async function play(scenario: Scenario, world: Simulation): Promise<void> {
  const { retries, timeoutMs, maxLimit, plantCount, events, faults } = scenario
  const checker = new CallChecker(world)
  const nextFault = world.createFaultSource(faults)
  let validToken = 1
  const service = createService()

  function createService(): PlantStore {
    const store = memoryStore()
    return createPlantStore({
      authenticate: (token) => (token === `token-${validToken}` ? 'ada' : null),
      maxLimit,
      onError: (error) => world.check(false, 'the service does not fail:', error),
      store: {
        list: (owner, page) => store.list(owner, page),
        create(owner, plant) {
          const isCreated = store.create(owner, plant)
          if (isCreated === true) checker.onChange(plant.id, plant)
          return isCreated
        },
        delete(owner, id) {
          const isDeleted = store.delete(owner, id)
          if (isDeleted === true) checker.onChange(id, undefined)
          return isDeleted
        },
      },
    })
  }

  /** Sends a request to the service, which executes it immediately. */
  async function forward(call: Call | undefined, url: string, init: RequestInit): Promise<Reply> {
    const { method, headers, body: requestBody = null } = init
    const { req, res } = toReqRes(new Request(url, { method: method!, headers: headers!, body: requestBody }))
    service(req, res)
    const response = await toFetchResponse(res)
    const body = await response.text()
    if (init.method !== 'GET' && response.ok && call !== undefined) checker.onEffect(call)
    return { status: response.status, headers: Object.fromEntries(response.headers), body }
  }

  function sleep(ms: number): Promise<void> {
    return ms === 0 ? Promise.resolve() : new Promise((resolve) => world.time.schedule(ms, resolve))
  }

  /** Sends a request through the proxy, which may respond long after the client has given up. */
  async function sendThroughProxy(call: Call, url: string, init: RequestInit, fault: Fault): Promise<Response> {
    const { kind, isForwarded, requestMs, responseMs, retryAfter } = fault
    const isPassed = isForwarded || ['cutWithin', 'truncate', 'delay', 'repeat'].includes(kind)
    await sleep(requestMs)
    let reply: Reply | undefined
    const hasNoEffect = ['unavailable', 'limited', 'redirect', 'rejected'].includes(kind)
    if (isPassed && !hasNoEffect) reply = await forward(call, url, init)
    if (kind === 'repeat') {
      call.isRepeated ||= isForwarded
      const repeated = await forward(call, url, init)
      if (isForwarded) reply = repeated
    }
    await sleep(responseMs)
    const headers = retryAfter === undefined ? {} : { 'Retry-After': retryAfter }
    const fail = (status: number, error: number): Response =>
      Response.json({ error, message: kind }, { status, headers })
    switch (kind) {
      case 'cut':
        throw new TypeError('fetch failed')
      case 'hang':
        return new Promise(() => undefined)
      case 'cutWithin':
      case 'truncate':
        return createTruncatedResponse(reply!, kind === 'cutWithin')
      case 'page':
        return new Response('<html>')
      case 'bad-gateway':
        return new Response('<html>', { status: [502, 503, 504][requestMs % 3]!, headers })
      case 'unavailable':
        return fail(503, 50300)
      case 'unknown':
        return fail(503, 50301)
      case 'failed':
        return fail(500, 50000)
      case 'limited':
        return new Response('<html>', { status: requestMs % 2 === 0 ? 429 : 408, headers })
      case 'rejected':
        return fail(401, 40101)
      case 'redirect':
        return new Response('', { status: 302, headers: { Location: 'http://other/' } })
      default:
        return toResponse(reply!)
    }
  }

  function createClient(call: Call): PlantClient {
    return createPlantClient({
      url: 'http://host/api/..',
      token: () => `token-${validToken}`,
      retries,
      timeoutMs,
      async fetch(url, init) {
        const attempt = checker.onRequest(call, `${init.method} ${url}`, retries)
        const fault = nextFault()
        world.log('call', call.number, attempt.request, fault?.kind ?? 'passed on', fault?.isForwarded)
        const sent = fault ? sendThroughProxy(call, url, init, fault) : forward(call, url, init).then(toResponse)
        const aborted = new Promise<never>((_, reject) => {
          init.signal!.addEventListener('abort', () => {
            attempt.endedAt = world.time.now
            attempt.minDelayMs = 250
            reject(new DOMException('aborted', 'AbortError'))
          })
        })
        const onEnd = (status: number, retryAfter: string | null | undefined): void => {
          attempt.endedAt = world.time.now
          attempt.status = status
          attempt.minDelayMs = Math.max(250, Math.min(30_000, 1000 * Number(retryAfter) || 0))
        }
        try {
          const response = await Promise.race([sent, aborted])
          onEnd(fault?.kind === 'cutWithin' ? 0 : response.status, response.headers.get('Retry-After'))
          return response
        } catch (error) {
          onEnd(0, undefined)
          throw error
        }
      },
    })
  }

  async function perform(call: Call): Promise<void> {
    const { event, controller, listed } = call
    const { signal } = controller
    const plants = createClient(call)
    if (event.kind === 'create') return plants.create(event, { signal })
    if (event.kind === 'delete') return plants.delete(event.id, { signal })
    for await (const plant of plants.list({ ...('after' in event ? event : {}), signal })) listed.push(plant)
  }

  function startCall(event: Call['event']): Call {
    const call = checker.start(event)
    perform(call).then(
      () => checker.onSuccess(call),
      (error: unknown) => checker.onFailure(call, error),
    )
    return call
  }

  function handleEvent(event: Event): void {
    if (event.kind === 'rotate') validToken++
    else if (event.kind === 'abort') void abort(event.index)
    else if (event.kind === 'other') void writeDirectly(event.id)
    else startCall(event)
  }

  async function abort(index: number): Promise<void> {
    const call = checker.calls.filter(({ isSettled }) => !isSettled).at(index % 3)
    if (call === undefined) return
    const { now } = world.time
    call.controller.abort(new Error(`call ${call.number} was aborted`))
    await sleep(1)
    world.check(call.isSettled && world.time.now === now + 1, 'an aborted call rejects immediately:', call.number)
  }

  function writeDirectly(id: bigint): Promise<Reply> {
    const exists = checker.plants.some((plant) => plant.id === id)
    const headers = { Authorization: `Bearer token-${validToken}`, 'Content-Type': 'application/json' }
    if (exists) return forward(undefined, `http://host/plants/${id}`, { method: 'DELETE', headers })
    return forward(undefined, 'http://host/plants', { method: 'POST', headers, body: `{"id":${id},"name":"Other"}` })
  }

  for (let id = 0n; id < plantCount; id++) await writeDirectly(id)
  await world.playEvents(events, handleEvent)
  await world.advance(MAX_CALL_MS)
  for (const { isSettled, number } of checker.calls) world.check(isSettled, 'every call settles:', number)
  world.check(world.time.pendingTimerCount === 0, 'no timer is left')

  const stored = JSON.stringify(checker.plants.map(({ name }) => name))
  const listing = startCall({ kind: 'list', after: undefined, limit: undefined })
  await world.advance(1000)
  world.check(listing.isSettled, 'without faults, a list takes no time')
  world.check(stored === JSON.stringify(listing.listed.map(({ name }) => name)), 'the final list equals the store')
}

function toResponse({ status, headers, body }: Reply): Response {
  return new Response(status === 204 ? null : body, { status, headers })
}

/** Creates a response that contains only half of its body, and ends either with an error or as if it were complete. */
function createTruncatedResponse({ status, headers, body }: Reply, hasError: boolean): Response {
  if (status === 204) {
    if (hasError) throw new TypeError('terminated')
    return new Response(null, { status, headers })
  }
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(body.slice(0, body.length / 2)))
      if (hasError) controller.error(new TypeError('terminated'))
      else controller.close()
    },
  })
  return new Response(stream, { status, headers })
}
