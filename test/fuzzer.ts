import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createPlantStore, MAX_PAGE, memoryStore, type Store } from '../src/index.ts'
import { readSettings } from '../src/standalone/config.ts'
import { createHttpServer } from '../src/standalone/http-server.ts'
import { assertAnswer } from './assert-answer.ts'
import { makeBytes } from './fuzz-requests.ts'
import { heapUsed } from './heap.ts'
import { createRandom, type Random } from './mutation.ts'
import { openSocket } from './raw-socket.ts'
import { close, del, get, listen, post, send } from './service.ts'
import { readAnswers, type WireAnswer } from './wire.ts'

/** What a run has done. */
export interface FuzzReport {
  readonly connections: number
  /** How many answers had each status. */
  readonly answers: ReadonlyMap<number, number>
  /** How much more of the heap is held after the run, in bytes. */
  readonly heapGrowth: number
}

/** How many connections there are at once. */
const CONCURRENCY = 128

/** So many come before the heap is measured first: until then code is compiled and caches are filled. */
const WARM_UP = 1000

/** A connection on which nothing more comes for so long is ended from our side. */
const QUIET_MS = 20

/** And then it must close within this time. */
const CLOSING_MS = 10_000

const MAX_HEAP_GROWTH = 8 * 2 ** 20

/** The server that the service is in: one of `node:http` as it is, or that of the standalone program. */
export type FuzzedServer = 'plain' | 'standalone'

/**
 * Sends mutated requests to a service, each on a connection of its own, and holds every answer against the
 * contract.
 * @throws Error that shows the bytes that broke it
 */
export async function fuzz(kind: FuzzedServer, seconds: number, seed: number): Promise<FuzzReport> {
  const store = memoryStore()
  for (let id = 0n; id < 2500n; id++) await store.create('many', { id, name: `plant ${id}` })
  const errors: unknown[] = []
  const service = createPlantStore({
    tokens: { fuzz: 'fuzz', many: 'many', probe: 'probe' },
    store: slowNowAndThen(store),
    onError: (error) => errors.push(error),
  })
  const server = kind === 'plain' ? createServer(service) : createHttpServer(service, readSettings({})).server
  await listen(server)

  const answers = new Map<number, number>()
  let connections = 0
  async function connectOnce(): Promise<void> {
    const index = connections++
    const random = createRandom(Math.imul(seed, 0x9e3779b1) + index)
    const bytes = makeBytes(random)
    try {
      for (const answer of await converse(server, bytes, random)) {
        assertAnswer(answer, kind === 'plain')
        answers.set(answer.status, (answers.get(answer.status) ?? 0) + 1)
      }
      assert.deepEqual(errors, [], 'the host was told of an error')
    } catch (cause) {
      const sent = JSON.stringify(bytes.toString('latin1'))
      throw new Error(`seed ${seed}, connection ${index}: ${sent}`, { cause })
    }
  }
  async function connectMany(goesOn: () => boolean): Promise<number> {
    async function connectOn(_: unknown, i: number): Promise<void> {
      while (goesOn()) {
        await connectOnce()
        if (i === 0) await assertServes(server)
      }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, connectOn))
    await assertServes(server)
    await assertNoneOpen(server)
    await clear(store, 'fuzz')
    return heapUsed()
  }

  try {
    const heapBefore = await connectMany(() => connections < WARM_UP)
    const endsAt = performance.now() + seconds * 1000
    const heapGrowth = (await connectMany(() => performance.now() < endsAt)) - heapBefore
    assert.ok(heapGrowth < MAX_HEAP_GROWTH, `${heapGrowth} bytes more are held than before`)
    return { connections, answers, heapGrowth }
  } finally {
    await close(server)
  }
}

/** The store answers some calls at once and some later. */
function slowNowAndThen(store: Store): Store {
  let calls = 0
  function answer<T>(value: T): T | Promise<T> {
    return ++calls % 2 === 0 ? value : setImmediate(value)
  }
  return {
    create: (owner, plant) => answer(store.create(owner, plant) as boolean),
    list: (owner, page) => answer(store.list(owner, page) as []),
    delete: (owner, id) => answer(store.delete(owner, id) as boolean),
  }
}

/** Sends bytes in one piece, or a few, and reads until the server closes the connection. */
async function converse(server: Server, bytes: Buffer, random: Random): Promise<readonly WireAnswer[]> {
  const socket = await openSocket(server)
  const chunks: Buffer[] = []
  const closed = new Promise<void>((resolve) => socket.on('close', resolve))
  socket.on('data', (chunk) => chunks.push(chunk))

  let at = 0
  while (random(3) === 0) {
    const end = at + random(bytes.length - at + 1)
    socket.write(bytes.subarray(at, end))
    at = end
    await setImmediate()
  }
  socket.write(bytes.subarray(at))
  let isStuck = false
  socket.setTimeout(QUIET_MS, () => {
    isStuck = socket.writableEnded
    if (isStuck) socket.destroy()
    else socket.setTimeout(CLOSING_MS).end()
  })
  await closed
  assert.ok(!isStuck, 'the server does not close the connection')

  const { answers, rest } = readAnswers(Buffer.concat(chunks), bytes.includes('HEAD '))
  // Node cuts a connection at the first byte that is no request, be an answer on its way or not.
  assert.match(rest.toString('latin1', 0, 9), /^(?:HTTP\/1\.1 |)$/)
  return answers
}

/** The service creates, lists and deletes for whoever asks as it should. */
async function assertServes(server: Server): Promise<void> {
  const answers = []
  const create = post('probe', '{"id":1,"name":"Fern"}')
  for (const request of [create, get('probe'), del('probe', '1'), get('probe')]) {
    const { status, body } = await send(server, request)
    answers.push([status, body])
  }
  assert.deepEqual(answers, [[200, '{"name":"Fern"}'], [200, '[{"name":"Fern"}]'], [204, ''], [200, '[]']])
}

async function assertNoneOpen(server: Server): Promise<void> {
  const countOpen = promisify(server.getConnections.bind(server))
  const endsAt = performance.now() + CLOSING_MS
  while ((await countOpen()) > 0) {
    assert.ok(performance.now() < endsAt, 'connections are open still')
    await setImmediate()
  }
}

async function clear(store: Store, owner: string): Promise<void> {
  const plants = await store.list(owner, { limit: MAX_PAGE })
  for (const { id } of plants) await store.delete(owner, id)
  if (plants.length === MAX_PAGE) await clear(store, owner)
}
