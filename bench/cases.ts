import { type ErrorName, ERRORS } from '../src/http/errors.ts'
import {
  behindCompression,
  type Contestant,
  FASTIFY,
  FLOOR,
  NATIVE,
  PEERS,
  PLANT_STORE,
  PLANT_STORE_AGAIN,
  PLANT_STORE_MAP,
  PROGRAM,
  PROGRAM_METRICS,
} from './contestants.ts'
import type { Database } from './databases.ts'
import type { Answer } from './response-reader.ts'

/** One thing that a service is asked to do, over and over. */
export interface Case {
  readonly name: string
  /** Who takes part. The first is what the others are compared with. */
  readonly contestants: readonly Contestant[]
  /** What keeps the plants, unless the contestants do. */
  readonly database?: Database
  /** Keep-alive connections, in place of the option's number. */
  readonly connections?: number
  /**
   * How many plants are created beforehand: so many, or one for each request at so many a second. A contestant
   * that is faster than that has a shorter run.
   */
  readonly seeds: number | { readonly perSecond: number }
  /** The nth request that does so. */
  readonly seed: (n: number) => string
  /** The nth request of the run. */
  readonly request: (n: number) => string
  /** What each of those must be answered. */
  readonly answer: Required<Answer>
}

/** As long as the random tokens that the service makes. */
export const TOKEN = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uEz9aGfLxNoCi'
const WRONG_TOKEN = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uEz9aGfLxNoCj'

/** What is answered to a wrong token. */
const REFUSED = errorBody('tokenRefused')

/** More than any list asks for, so that each is cut short. */
const LISTED = 2000

const NAME = 'Monstera deliciosa'

function errorBody(name: ErrorName): Buffer {
  const { error, message } = ERRORS[name]
  return Buffer.from(JSON.stringify({ error, message }))
}

const member = (name: string): string => `"name":"${name}","tag":"tropical"}`

/** Creates the nth of the plants that are written while others are read: none of those that are listed. */
export function write(n: number): string {
  return create(500_000_000 + n, NAME)
}

function create(id: number, name: string, token = TOKEN): string {
  const body = `{"id":${id},${member(name)}`
  return (
    `POST /plants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
}

function withoutBody(method: string, target: string, token = TOKEN): string {
  return `${method} ${target} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n\r\n`
}

/** The nth id of a run; all have nine digits. */
export type IdOf = (n: number) => number

/** As a sequence or a clock hands them out. */
export const ascending: IdOf = (n) => 100_000_000 + n

/** Each of 2^29 once, in no order that helps a store: an odd factor permutes the residues. */
const scattered: IdOf = (n) => 100_000_000 + (Math.imul(n, 0x9e3779b1) & 0x1fffffff)

const onMemory = {
  contestants: [FLOOR, NATIVE, PLANT_STORE, PLANT_STORE_AGAIN, PLANT_STORE_MAP, PROGRAM, PROGRAM_METRICS, ...PEERS],
}

/** `GET /plants` with a limit, on a memory store. */
export function list(limit: number): Case {
  const request = withoutBody('GET', `/plants?limit=${limit}`)
  const name = (n: number): string => `${NAME} ${n}`
  const plants = Array.from({ length: limit }, (_, n) => `{${member(name(n))}`)
  return {
    ...onMemory,
    name: `list-${limit}`,
    seeds: LISTED,
    seed: (n) => create(ascending(n), name(n)),
    request: () => request,
    answer: { status: 200, body: Buffer.from(`[${plants.join()}]`) },
  }
}

/** `GET /plants` of an owner who has no more: a response in which plant-store sends no more than the others. */
function listAll(plants: number): Case {
  const request = withoutBody('GET', '/plants')
  return { ...list(plants), name: `list-all-${plants}`, seeds: plants, request: () => request }
}

/** The same list without ids and with them. */
function listWithIds(limit: number): Case {
  const without = list(limit)
  const request = without.request(0).replace(' HTTP', '&include=id HTTP')
  const plants = JSON.parse(without.answer.body.toString()) as object[]
  const body = Buffer.from(JSON.stringify(plants.map((plant, n) => ({ id: ascending(n), ...plant }))))
  const withIds = { request: () => request, answer: { status: 200, body } }
  return {
    ...without,
    name: `${without.name}-ids`,
    contestants: [PLANT_STORE, { ...PLANT_STORE, name: 'with ids', instead: withIds }],
  }
}

/** `POST /plants` with a fresh id each time, on a memory store. */
export function creating(name: string, idOf: IdOf): Case {
  const request = (n: number): string => create(idOf(n), NAME)
  const body = Buffer.from(`{${member(NAME)}`)
  return { ...onMemory, name, seeds: 0, seed: request, request, answer: { status: 200, body } }
}

/** `DELETE /plants/{id}` of plants that are there, on a memory store. */
export function deleting(name: string, idOf: IdOf, perSecond = 50_000): Case {
  return {
    ...onMemory,
    name,
    seeds: { perSecond },
    seed: (n) => create(idOf(n), NAME),
    request: (n) => withoutBody('DELETE', `/plants/${idOf(n)}`),
    answer: { status: 204, body: Buffer.alloc(0) },
  }
}

/** A list that is refused. */
function unauthorized(name: string, request: string, body: Buffer): Case {
  return { ...list(10), name, request: () => request, answer: { status: 401, body } }
}

const LIST_10 = '/plants?limit=10'

/** A case with the middleware that wraps a response most: it looks at each, and compresses none as short as these. */
function behindMiddleware(theCase: Case): Case {
  return {
    ...theCase,
    name: `${theCase.name}-compression`,
    contestants: [FLOOR, NATIVE, PLANT_STORE, FASTIFY].map(behindCompression),
    request: (n) => theCase.request(n).replace('\r\n', '\r\nAccept-Encoding: gzip\r\n'),
  }
}

const BROWSER = [
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  'Accept: application/json',
  'Accept-Language: en-US,en;q=0.5',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Referer: https://app.example/',
  'Origin: https://app.example',
  'Sec-Fetch-Dest: empty',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Site: same-site',
  'X-Forwarded-For: 192.0.2.1',
  'X-Forwarded-Proto: https',
]

/** A case with the header fields of a browser behind a proxy. */
function fromBrowser(theCase: Case): Case {
  return {
    ...theCase,
    name: `${theCase.name}-browser`,
    request: (n) => theCase.request(n).replace('\r\n', `\r\n${BROWSER.join('\r\n')}\r\n`),
  }
}

/** Everything that takes no database. */
export const CASES: readonly Case[] = [
  list(10),
  list(100),
  list(1000),
  listWithIds(10),
  listWithIds(100),
  listAll(10),
  listAll(100),
  creating('create', ascending),
  creating('create-scattered', scattered),
  deleting('delete', ascending),
  deleting('delete-scattered', scattered),
  unauthorized('unauthorized', withoutBody('GET', LIST_10, WRONG_TOKEN), REFUSED),
  unauthorized('unauthorized-no-token', `GET ${LIST_10} HTTP/1.1\r\nHost: bench\r\n\r\n`, errorBody('noToken')),
  unauthorized('unauthorized-create', create(ascending(0), NAME, WRONG_TOKEN), REFUSED),
  behindMiddleware(list(10)),
  fromBrowser(list(10)),
]
