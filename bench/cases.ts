import { type ErrorName, ERRORS } from '../src/http/errors.ts'
import {
  withCompression,
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
  type Workload,
} from './contestants.ts'
import type { Database } from './databases.ts'

/** A benchmark scenario: a request that is sent to each contestant repeatedly, and the plants that exist beforehand. */
export interface Case extends Workload {
  readonly name: string
  /** All ratios are relative to the first contestant. */
  readonly contestants: readonly Contestant[]
  /** The database that stores the plants. If absent, contestants keep the plants in memory. */
  readonly database?: Database
  /** The number of keep-alive connections; overrides `--connections`. */
  readonly connections?: number
  /**
   * The number of plants that exist before the run. Use `perSecond` if each request uses up a plant: it creates enough
   * plants for that many requests per second. If a contestant is faster, its run ends early.
   */
  readonly seedCount: number | { readonly perSecond: number }
  /** Returns the request that creates the nth of these plants. */
  readonly seedRequest: (n: number) => string
}

/** Has the same length as the random tokens that the standalone server generates. */
export const TOKEN = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uEz9aGfLxNoCi'
const WRONG_TOKEN = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uEz9aGfLxNoCj'

const INVALID_TOKEN_BODY = errorBody('invalidToken')

/** More plants than any `limit` in the cases, so that every list is truncated. */
const SEEDED_PLANTS = 2000

const PLANT_NAME = 'Monstera deliciosa'

function errorBody(name: ErrorName): Buffer {
  const { error, message } = ERRORS[name]
  return Buffer.from(JSON.stringify({ error, message }))
}

const plantFields = (name: string): string => `"name":"${name}","tag":"tropical"}`

/**
 * Returns the nth create request of a client that writes while others list plants. The new plant's id is greater than
 * all listed ids.
 */
export function buildWriteRequest(n: number): string {
  return buildCreateRequest(500_000_000 + n, PLANT_NAME)
}

function buildCreateRequest(id: number, name: string, token = TOKEN): string {
  const body = `{"id":${id},${plantFields(name)}`
  return (
    `POST /plants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
}

function buildRequest(method: string, target: string, token = TOKEN): string {
  return `${method} ${target} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n\r\n`
}

/** Returns the nth id of a run. All ids have nine digits. */
export type IdGenerator = (n: number) => number

/** Generates ascending ids, as a sequence or a clock would. */
export const ascendingId: IdGenerator = (n) => 100_000_000 + n

/**
 * Generates ids in pseudorandom order, without repetition: the factor is odd, so multiplying by it permutes the
 * residues modulo 2^29.
 */
const scatteredId: IdGenerator = (n) => 100_000_000 + (Math.imul(n, 0x9e3779b1) & 0x1fffffff)

const onMemoryStore = {
  contestants: [FLOOR, NATIVE, PLANT_STORE, PLANT_STORE_AGAIN, PLANT_STORE_MAP, PROGRAM, PROGRAM_METRICS, ...PEERS],
}

/** `GET /plants` with a limit, in memory. */
export function listPlantsCase(limit: number): Case {
  const request = buildRequest('GET', `/plants?limit=${limit}`)
  const name = (n: number): string => `${PLANT_NAME} ${n}`
  const plants = Array.from({ length: limit }, (_, n) => `{${plantFields(name(n))}`)
  return {
    ...onMemoryStore,
    name: `list-${limit}`,
    seedCount: SEEDED_PLANTS,
    seedRequest: (n) => buildCreateRequest(ascendingId(n), name(n)),
    request: () => request,
    expectedResponse: { status: 200, body: Buffer.from(`[${plants.join()}]`) },
  }
}

/** `GET /plants` without a limit: there is no `Link` header, so all contestants send identical responses. */
function listAllPlantsCase(plants: number): Case {
  const request = buildRequest('GET', '/plants')
  return { ...listPlantsCase(plants), name: `list-all-${plants}`, seedCount: plants, request: () => request }
}

/** `GET /plants` with a limit, without and with `include=id`. */
function listWithIdsCase(limit: number): Case {
  const withoutIds = listPlantsCase(limit)
  const request = withoutIds.request(0).replace(' HTTP', '&include=id HTTP')
  const plants = JSON.parse(withoutIds.expectedResponse.body.toString()) as object[]
  const body = Buffer.from(JSON.stringify(plants.map((plant, n) => ({ id: ascendingId(n), ...plant }))))
  const withIds = { request: () => request, expectedResponse: { status: 200, body } }
  return {
    ...withoutIds,
    name: `${withoutIds.name}-ids`,
    contestants: [PLANT_STORE, { ...PLANT_STORE, name: 'with ids', overrides: withIds }],
  }
}

/** `POST /plants` with a new id each time, in memory. */
export function createPlantsCase(name: string, nthId: IdGenerator): Case {
  const request = (n: number): string => buildCreateRequest(nthId(n), PLANT_NAME)
  const body = Buffer.from(`{${plantFields(PLANT_NAME)}`)
  return {
    ...onMemoryStore,
    name,
    seedCount: 0,
    seedRequest: request,
    request,
    expectedResponse: { status: 200, body },
  }
}

/** `DELETE /plants/{id}` of existing plants, in memory. */
export function deletePlantsCase(name: string, nthId: IdGenerator, perSecond = 50_000): Case {
  return {
    ...onMemoryStore,
    name,
    seedCount: { perSecond },
    seedRequest: (n) => buildCreateRequest(nthId(n), PLANT_NAME),
    request: (n) => buildRequest('DELETE', `/plants/${nthId(n)}`),
    expectedResponse: { status: 204, body: Buffer.alloc(0) },
  }
}

/** A request that gets a 401. */
function unauthorizedCase(name: string, request: string, body: Buffer): Case {
  return { ...listPlantsCase(10), name, request: () => request, expectedResponse: { status: 401, body } }
}

const LIST_10_TARGET = '/plants?limit=10'

/**
 * Puts the contestants behind the `compression` middleware, which replaces more response methods than other middleware
 * does. The responses in this case are too short to be compressed.
 */
function withCompressionMiddleware(theCase: Case): Case {
  return {
    ...theCase,
    name: `${theCase.name}-compression`,
    contestants: [FLOOR, NATIVE, PLANT_STORE, FASTIFY].map(withCompression),
    request: (n) => theCase.request(n).replace('\r\n', '\r\nAccept-Encoding: gzip\r\n'),
  }
}

const BROWSER_HEADERS = [
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

/** Adds the header fields of a browser request that came through a proxy. */
function withBrowserHeaders(theCase: Case): Case {
  return {
    ...theCase,
    name: `${theCase.name}-browser`,
    request: (n) => theCase.request(n).replace('\r\n', `\r\n${BROWSER_HEADERS.join('\r\n')}\r\n`),
  }
}

/** The cases without a database. */
export const CASES: readonly Case[] = [
  listPlantsCase(10),
  listPlantsCase(100),
  listPlantsCase(1000),
  listWithIdsCase(10),
  listWithIdsCase(100),
  listAllPlantsCase(10),
  listAllPlantsCase(100),
  createPlantsCase('create', ascendingId),
  createPlantsCase('create-scattered', scatteredId),
  deletePlantsCase('delete', ascendingId),
  deletePlantsCase('delete-scattered', scatteredId),
  unauthorizedCase('unauthorized', buildRequest('GET', LIST_10_TARGET, WRONG_TOKEN), INVALID_TOKEN_BODY),
  unauthorizedCase(
    'unauthorized-no-token',
    `GET ${LIST_10_TARGET} HTTP/1.1\r\nHost: bench\r\n\r\n`,
    errorBody('missingToken'),
  ),
  unauthorizedCase(
    'unauthorized-create',
    buildCreateRequest(ascendingId(0), PLANT_NAME, WRONG_TOKEN),
    INVALID_TOKEN_BODY,
  ),
  withCompressionMiddleware(listPlantsCase(10)),
  withBrowserHeaders(listPlantsCase(10)),
]
