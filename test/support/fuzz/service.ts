import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { MAX_PAGE, memoryStore, type PlantStoreOptions, type Store } from '../../../src/index.ts'
import { until } from '../until.ts'
import { createService, listen } from '../wire/service.ts'
import { createStandaloneServer } from '../program/standalone-server.ts'

/** The server that the service is in: one of `node:http` as it is, or that of the standalone program. */
export type FuzzedServer = 'plain' | 'standalone'

/** What one client did to the plants. */
export interface Visit {
  /** Five characters that make its tokens, and so its plants, its own. */
  readonly tag: string
  /** The creates and deletes that the store was asked for, each with what the store said, in order. */
  readonly writes: string[]
  /** The calls that the service waits for. */
  pending: number
}

/** A service that takes visitors, each an owner for as long as it stays. */
export interface FuzzedService {
  readonly server: Server
  /** What the host was told of. */
  readonly errors: unknown[]
  /** How often its guard has woken. */
  readonly wakings: () => number
  /** @param pace two visits of the same pace that ask for the same get it equally fast */
  enter(pace: number): Visit
  /** Forgets a visitor and its plants, and returns these as they are listed. */
  leave(visit: Visit): Promise<readonly string[]>
  /** The server's end of a connection, once it has accepted it. */
  accepted(port: number): Promise<Socket>
}

/** Of five characters, the first a letter: no number that is answered looks like it. */
const FIRST_TAG = parseInt('h0000', 36)

/** The guard of the program wakes and sleeps often, and no request is late because the machine is busy. */
const LIMITS = { guardMs: 20, headersTimeoutMs: 60_000, requestTimeoutMs: 60_000 }

/** Starts a service. Its store and its tokens answer some calls at once and some a few rounds of the event loop later. */
export async function serveFuzzed(kind: FuzzedServer): Promise<FuzzedService> {
  const many = memoryStore()
  for (let id = 0n; id < 2500n; id++) await many.create('many', { id, name: `plant ${id}` })
  const memory = memoryStore()
  const visits = new Map<string, Visit & { readonly pace: number }>()
  const errors: unknown[] = []
  let entered = FIRST_TAG

  /** Calls for a visitor, as fast as its pace and the call say, and not as what happened before. */
  function answer<T>(owner: string, call: string, act: () => T): T | Promise<T> {
    const visit = visits.get(tagOf(owner))!
    const turns = turnsOf(visit.pace, call)
    if (turns === 0) return act()
    visit.pending++
    return later(turns).then(() => {
      visit.pending--
      return act()
    })
  }

  function write(owner: string, call: string, act: () => unknown): boolean | Promise<boolean> {
    return answer(owner, call, () => {
      const isDone = !isReader(owner) && act() === true
      visits.get(tagOf(owner))!.writes.push(`${call}: ${isDone}`)
      return isDone
    })
  }

  const store: Store = {
    create: (owner, plant) => write(owner, `create ${plant.id}`, () => memory.create(owner, plant)),
    list: (owner, page) =>
      answer(owner, `list ${page.limit} ${page.after}`, () =>
        isReader(owner) ? many.list('many', page) : memory.list(owner, page),
      ) as [],
    delete: (owner, id) => write(owner, `delete ${id}`, () => memory.delete(owner, id)),
    ping: () => later(2),
  }
  const options: Partial<PlantStoreOptions> = {
    authenticate: (token) =>
      /^(?:fuzz|many)-/.test(token) && visits.has(tagOf(token)) ? answer(token, 'token', () => token) : null,
    store,
    maxBodyBytes: 10_000,
    onError: (error) => errors.push(error),
  }

  let wakings = 0
  const onGuard = (isAwake: boolean): unknown => isAwake && wakings++
  const server =
    kind === 'plain' ? createServer(createService(options)) : createStandaloneServer(options, LIMITS, { onGuard })
  const sockets = new Map<number, Socket>()
  server.on('connection', (socket: Socket) => {
    const port = socket.remotePort!
    sockets.set(port, socket)
    socket.on('close', () => sockets.delete(port))
  })
  await listen(server)

  return {
    server,
    errors,
    wakings: () => wakings,
    enter(pace) {
      const visit = { tag: (entered++).toString(36), pace, writes: [], pending: 0 }
      visits.set(visit.tag, visit)
      return visit
    },
    async leave({ tag }) {
      visits.delete(tag)
      const plants = await memory.list(`fuzz-${tag}`, { limit: MAX_PAGE, maxBytes: Infinity })
      for (const { id } of plants) await memory.delete(`fuzz-${tag}`, id)
      return plants.map(({ id, name, tag: kind }) => JSON.stringify([String(id), name, kind]))
    },
    async accepted(port) {
      await until(() => sockets.has(port))
      return sockets.get(port)!
    },
  }
}

function tagOf(owner: string): string {
  return owner.slice(-5)
}

/** Whether it is one that has many plants, which all of its kind share and none can change. */
function isReader(owner: string): boolean {
  return owner.startsWith('many-')
}

/** From 0, for at once, to 3; the same for the same call at the same pace. */
function turnsOf(pace: number, call: string): number {
  let hash = pace
  for (let i = 0; i < call.length; i++) hash = Math.imul(hash ^ call.charCodeAt(i), 0x01000193)
  return Math.max(0, ((hash >>> 16) % 8) - 4)
}

async function later(turns: number): Promise<void> {
  for (let i = 1; i < turns; i++) await setImmediate()
}
