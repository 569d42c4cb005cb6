/**
 * A store that keeps plants in a Postgres database.
 * @module plant-store/postgres
 */

import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { MAX_INT64, MIN_INT64, type NewPlant } from '../../plants/plant.ts'
import type { Page, PageRequest, Store } from '../../plants/store.ts'
import { applyMigrations, MIGRATIONS } from './migrations.ts'
import { createBatcher, createSend, type ConnectionPool, type Statement } from './send.ts'

export type { Connection, ConnectionPool, QueryResult } from './send.ts'

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /**
   * The table and its schema, as in SQL: `schema.table`. A name with other characters than lowercase letters, digits and
   * underscores must be in double quotes: `"my-schema".plants`.
   * @default 'public.plant_store_plants'
   */
  readonly table?: string | undefined
  /**
   * How long the server can take to respond to a statement, in milliseconds. After that, the connection is closed. Less
   * than the `storeTimeoutMs` of the service, by at least the `connectionTimeoutMillis` of the pool.
   * @default 4_500
   */
  readonly timeoutMs?: number | undefined
  /** Called with a one-line message for the operator. @default ignores it */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** A store that keeps plants in a Postgres database. */
export interface PostgresStore extends Store {
  create(owner: string, plant: NewPlant): Promise<boolean>
  list(owner: string, request: PageRequest): Promise<Page>
  delete(owner: string, id: bigint): Promise<boolean>
  /** Resolves if the table exists, has the key that the store needs, and is writable. */
  ping(): Promise<void>
  /**
   * Creates the table, or adds the columns that it lacks. Any number of processes can call this at the same time. If
   * there is nothing to do, the role needs no privileges for it.
   */
  migrate(): Promise<void>
  /** Does nothing, because the pool is yours, and exists only so that `await using` works. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The SQL that creates the table, for applications with migrations of their own. */
export const schema: string = MIGRATIONS[0].sql('public.plant_store_plants')

/** Pages of at most this many plants are read without counting their bytes, which would cost a fifth. */
const MAX_SMALL_PAGE = 10

/**
 * Creates a store that keeps plants in a Postgres database. Any number of service processes can share the database.
 * Creates that arrive while another one is being sent share the next statement.
 *
 * You own the pool: end it yourself, and set its `connectionTimeoutMillis` and `statement_timeout`. The store adds
 * `error` listeners to the pool and its connections, because a connection that breaks would otherwise crash the process.
 * @param pool a connection pool for a database with the encoding UTF8
 * @throws TypeError if the pool or the name of the table is invalid
 *
 * @example
 * import { createServer } from 'node:http'
 * import pg from 'pg'
 * import { createPlantStore } from 'plant-store'
 * import { postgresStore } from 'plant-store/postgres'
 *
 * const connectionString = 'postgres://user:password@host/database'
 * const store = postgresStore(new pg.Pool({ connectionString, connectionTimeoutMillis: 5000, statement_timeout: 4000 }))
 * await store.migrate()
 * const plants = createPlantStore({ store, tokens: { 'a-long-random-token': 'ada' } })
 *
 * createServer(plants).listen(3000)
 */
export function postgresStore(pool: ConnectionPool, options: PostgresStoreOptions = {}): PostgresStore {
  const { table = 'public.plant_store_plants', timeoutMs = 4500, onWarning } = options
  // The message doesn't quote the value, which could be a URL with a password.
  if (typeof (pool as Partial<ConnectionPool> | null | undefined)?.connect !== 'function') {
    throw new TypeError(`pool must be a connection pool with a connect method, not a value of type ${typeof pool}`)
  }
  if (!/^(?:(?:[a-z_][a-z0-9_]*|"(?:[^"\0]|"")+")(?:\.(?!$)|$)){2}$/.test(table)) {
    throw new TypeError(`options.table must be a schema and a table, such as "public.plants", not ${table}`)
  }
  // Naming the key makes the server reject a table without exactly this key, instead of creating duplicates. The
  // collation C never changes with the operating system.
  const insert = `INSERT INTO ${table} (owner, id, name, tag)`
  const onConflict = 'ON CONFLICT (owner COLLATE "C", id) DO NOTHING'
  const CREATE = statement(`${insert} VALUES ($1, $2, $3, $4) ${onConflict}`)
  // Sorted by key, so that concurrent statements can't deadlock. The first create of an id wins. Returns the keys of the
  // created plants only if some of them existed, because parsing a row for each plant takes long.
  const CREATE_MANY = statement(`WITH created AS (${insert} SELECT owner, id, name, tag
      FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[])
        WITH ORDINALITY AS plants (owner, id, name, tag, position)
      ORDER BY owner COLLATE "C", id, position ${onConflict} RETURNING owner, id)
    SELECT CASE WHEN count(*) < cardinality($2) THEN coalesce(json_agg(owner || ' ' || id), '[]')::text END FROM created`)
  const DELETE = statement(`DELETE FROM ${table} WHERE owner = $1 AND id = $2`)
  const select = `FROM ${table} AS plants WHERE owner = $1 AND id >= $2 ORDER BY plants.id LIMIT $3`
  // Ids are text, because an application can configure the driver to parse them as doubles.
  const LIST = statement(`SELECT id::text, name, tag ${select}`)
  // Ends the page one row after $4 bytes, so that a thousand large plants don't fill the memory.
  const LIST_BOUNDED = statement(`SELECT id::text, name, tag FROM (
      SELECT id, name, tag, sum(octet_length(name) + coalesce(octet_length(tag), 0))
        OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS bytes
      FROM (SELECT id, name, tag ${select}) AS plants
    ) AS plants WHERE (bytes >= $4) IS NOT TRUE ORDER BY plants.id`)
  // Changes nothing, but fails if a create, list or delete would fail. Another unique index would reject valid plants.
  const CHECK =
    statement(`WITH created AS (${insert} SELECT ''::text, 0::bigint, ''::text, NULL::text WHERE false ${onConflict} RETURNING owner),
      deleted AS (DELETE FROM ${table} WHERE owner = ''::text AND id = 0::bigint AND false RETURNING id, name, tag)
    SELECT current_setting('server_encoding'), (
      SELECT string_agg(indexrelid::regclass::text, ', ') FROM pg_index
      WHERE indrelid = to_regclass($1) AND indisunique AND NOT ARRAY['owner', 'id']::name[] <@ ARRAY(
        SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey)))`)

  const send = createSend(pool, timeoutMs, onWarning)
  const create = createBatcher(async (rows) => {
    if (rows.length === 1) return [(await send(CREATE, [...rows[0]!], true)).rowCount !== 0]
    const columns = [0, 1, 2, 3].map((column) => rows.map((row) => row[column]))
    const [[createdKeys]] = (await send(CREATE_MANY, columns, true)).rows as [[string | null]]
    if (createdKeys === null) return rows.map(() => true)
    const created = new Set(JSON.parse(createdKeys) as string[])
    return rows.map(([owner, id]) => created.delete(`${owner} ${id}`))
  }, timeoutMs)

  return {
    create: (owner, { id, name, tag = null }) => create(owner, String(id), name, tag),
    async list(owner, { limit, maxBytes, after = MIN_INT64 - 1n }) {
      if (after === MAX_INT64) return { plants: [], hasMore: false }
      // One extra row reveals whether there is a next page.
      const values = [owner, String(after + 1n), limit + 1]
      const { rows } = await (limit <= MAX_SMALL_PAGE ? send(LIST, values) : send(LIST_BOUNDED, [...values, maxBytes]))
      const plants: NewPlant[] = []
      let bytes = 0
      for (const [id, name, tag] of rows as [string, string, string | null][]) {
        if (plants.length === limit || bytes >= maxBytes) break
        plants.push(tag === null ? { id: BigInt(id), name } : { id: BigInt(id), name, tag })
        bytes += Buffer.byteLength(name) + Buffer.byteLength(tag ?? '')
      }
      return { plants, hasMore: plants.length < rows.length }
    },
    delete: async (owner, id) => (await send(DELETE, [owner, String(id)], true)).rowCount !== 0,
    async ping() {
      const { rows } = await send(CHECK, [table]).catch((error: unknown) => {
        if ((error as { code?: string }).code !== '42P10') throw error
        throw new Error(`The table ${table} needs the key PRIMARY KEY (owner COLLATE "C", id).`, { cause: error })
      })
      const [encoding, indexes] = rows[0] as [string, string | null]
      if (encoding !== 'UTF8') throw new Error(`The encoding of the database must be UTF8, not ${encoding}.`)
      if (indexes !== null) throw new Error(`The table ${table} has another unique index: drop ${indexes}.`)
    },
    migrate: () => applyMigrations(send, table),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

/** The name contains a digest, so that sessions that a pooler shares never mix up two statements. */
const statement = (text: string): Statement => ({
  name: `plant-store ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`,
  text,
})
