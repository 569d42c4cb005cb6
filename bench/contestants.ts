import type { ExpectedResponse } from './response-reader.ts'

/** The requests of a run, and the response that all of them get. */
export interface Workload {
  /** Returns the nth request of the run. */
  readonly request: (n: number) => string
  readonly expectedResponse: Required<ExpectedResponse>
}

/** An implementation of the service. */
export interface Contestant {
  readonly name: string
  /** The path of its file, relative to this folder. */
  readonly file: string
  /** Passed to the default export of the file. */
  readonly options?: object
  /** Whether an equal number of additional connections create plants during the measurement. */
  readonly hasConcurrentWrites?: true
  /** Whether the contestant sends the same response to every request, and so doesn't need any plants. */
  readonly isConstant?: true
  /** Replaces the workload of the case. */
  readonly overrides?: Workload
  /** Whether the contestant runs only if `--against` lists it. */
  readonly isOptional?: true
}

/** A bare `node:http` server that sends a constant response: the minimum cost of a request. */
export const FLOOR: Contestant = { name: 'floor', file: 'contestants/floor.js', isConstant: true }
/** A service written by hand on `node:http`, without plant-store's validation. */
export const NATIVE: Contestant = { name: 'native', file: 'contestants/native.js' }
export const PLANT_STORE: Contestant = { name: 'plant-store', file: 'contestants/plant-store.js' }
/** A second instance of plant-store. Its ratio to the first instance shows the noise of the measurement. */
export const PLANT_STORE_AGAIN: Contestant = { ...PLANT_STORE, name: 'plant-store again' }
/** plant-store with a store that keeps plants in a `Map`, as the peers do, instead of as JSON text. */
export const PLANT_STORE_MAP: Contestant = {
  ...PLANT_STORE,
  name: 'plant-store-map',
  options: { keepsText: false },
  isOptional: true,
}
/** The standalone server: plant-store behind its own HTTP server. */
export const PROGRAM: Contestant = { name: 'program', file: 'contestants/program.js' }
export const PROGRAM_METRICS: Contestant = {
  ...PROGRAM,
  name: 'program-metrics',
  options: { environment: { PLANT_STORE_ADMIN_PORT: '0' } },
  isOptional: true,
}

/** Returns a contestant that runs behind the `compression` middleware. */
export function withCompression({ file, ...contestant }: Contestant): Contestant {
  return { ...contestant, file: 'contestants/with-compression.js', options: { file } }
}

export const FASTIFY: Contestant = { name: 'fastify', file: 'peers/fastify.js', isOptional: true }

/** Fastify with the `@fastify/bearer-auth` plugin, which compares tokens in constant time. */
export const FASTIFY_BEARER: Contestant = { ...FASTIFY, name: 'fastify-bearer', options: { tokens: 'plugin' } }
/** Fastify, looking up tokens by digest and plants by owner, as plant-store does. */
export const FASTIFY_ALIKE: Contestant = { ...FASTIFY, name: 'fastify-alike', options: { tokens: 'digest' } }
/** Like {@link FASTIFY_ALIKE}, but also stores the JSON text of each plant for lists. */
export const FASTIFY_TEXT: Contestant = {
  ...FASTIFY,
  name: 'fastify-text',
  options: { tokens: 'digest', keepsText: true },
}

export const PEERS: readonly Contestant[] = [
  FASTIFY,
  FASTIFY_BEARER,
  FASTIFY_ALIKE,
  FASTIFY_TEXT,
  { name: 'express', file: 'peers/express.js', isOptional: true },
  { name: 'h3', file: 'peers/h3.js', isOptional: true },
  { name: 'hono', file: 'peers/hono.js', isOptional: true },
  { name: 'koa', file: 'peers/koa.js', isOptional: true },
  { name: 'polka', file: 'peers/polka.js', isOptional: true },
  { name: 'tinyhttp', file: 'peers/tinyhttp.js', isOptional: true },
]

export const PLANT_STORE_MEMORY: Contestant = { ...PLANT_STORE, name: 'memory' }
export const SQLITE_STORE: Contestant = { name: 'sqlite', file: 'contestants/plant-store-sqlite.js' }
export const SQLITE_STORE_ONE_BY_ONE: Contestant = { ...SQLITE_STORE, name: 'one-by-one', options: { maxBatch: 1 } }
export const SQLITE_STORE_WRITING: Contestant = { ...SQLITE_STORE, name: 'sqlite, writing', hasConcurrentWrites: true }

export const FASTIFY_PG: Contestant = { name: 'fastify-pg', file: 'peers/fastify-pg.js' }
export const POSTGRES_STORE: Contestant = { name: 'plant-store', file: 'contestants/plant-store-postgres.js' }
/** One statement per request, and as many concurrent statements as the pool has connections. */
export const POSTGRES_STORE_ONE_BY_ONE: Contestant = {
  ...POSTGRES_STORE,
  name: 'one-by-one',
  options: { maxBatch: 1, maxInFlight: 10 },
}
