import type { Case } from './cases.ts'

/** One way to build the service. */
export interface Contestant {
  readonly name: string
  /** Its file, seen from this folder. */
  readonly file: string
  /** Handed to its default export. */
  readonly options?: object
  /** Is measured while as many connections again create plants. */
  readonly hasConcurrentWrites?: true
  /** Answers every request the same, and so is given no plants. */
  readonly isConstant?: true
  /** Is asked this in place of the case's own, and must answer it so. */
  readonly overrides?: Pick<Case, 'request' | 'expectedResponse'>
  /** Takes part if `--against` names it. */
  readonly isOptional?: true
}

export const FLOOR: Contestant = { name: 'floor', file: 'contestants/floor.js', isConstant: true }
export const NATIVE: Contestant = { name: 'native', file: 'contestants/native.js' }
export const PLANT_STORE: Contestant = { name: 'plant-store', file: 'contestants/plant-store.js' }
/** The same once more: what lies within its ratio is noise. */
export const PLANT_STORE_AGAIN: Contestant = { ...PLANT_STORE, name: 'plant-store again' }
/** On a store that keeps no JSON text, but plants in a `Map`, as the peers do. */
export const PLANT_STORE_MAP: Contestant = {
  ...PLANT_STORE,
  name: 'plant-store-map',
  options: { keepsText: false },
  isOptional: true,
}
/** The same service behind the server of the program. */
export const PROGRAM: Contestant = { name: 'program', file: 'contestants/program.js' }
export const PROGRAM_METRICS: Contestant = {
  ...PROGRAM,
  name: 'program-metrics',
  options: { environment: { PLANT_STORE_ADMIN_PORT: '0' } },
  isOptional: true,
}

/** A contestant with compression in front. */
export function withCompression({ file, ...contestant }: Contestant): Contestant {
  return { ...contestant, file: 'contestants/with-compression.js', options: { file } }
}

export const FASTIFY: Contestant = { name: 'fastify', file: 'peers/fastify.js', isOptional: true }

/** With its plugin, which compares tokens in constant time. */
export const FASTIFY_BEARER: Contestant = { ...FASTIFY, name: 'fastify-bearer', options: { tokens: 'plugin' } }
/** With tokens by their digest and plants by owner, as plant-store has them. */
export const FASTIFY_ALIKE: Contestant = { ...FASTIFY, name: 'fastify-alike', options: { tokens: 'digest' } }
/** The same, and it keeps the JSON text of each plant for its lists. */
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
/** Each request with a statement of its own, as many at once as the pool has connections. */
export const POSTGRES_STORE_ONE_BY_ONE: Contestant = {
  ...POSTGRES_STORE,
  name: 'one-by-one',
  options: { maxBatch: 1, maxInFlight: 10 },
}
