/**
 * A store that keeps plants in a Postgres database.
 * @module plant-store/postgres
 */

import { setImmediate } from 'node:timers/promises'
import { MAX_INT64, MIN_INT64, TEXT_NAMES } from '../../plants/plant.ts'
import type { Page, PageRequest, Store } from '../../plants/store.ts'
import { COLUMNS, encodePlants, TEXTS, toPage, toTextValues, type SelectedRow } from '../rows.ts'
import { applyMigrations, batchCreates, createPrepare, DEFAULT_TABLE, TABLE_NAME, type ConnectionPool } from './send.ts'

export type { ConnectionPool } from './send.ts'

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /**
   * The schema and the table, as in SQL: `my_schema.plants` or `"My schema".plants`.
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

/**
 * Creates a store that keeps plants in a Postgres database. Any number of service processes can share the database.
 *
 * You own the pool: end it yourself, and set its `connectionTimeoutMillis` and `statement_timeout`. The store adds
 * an `error` listener to the pool, because a connection that breaks would otherwise crash the process.
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
  const { table = DEFAULT_TABLE, timeoutMs = 4500, onWarning } = options
  // The message doesn't quote the value, which could be a URL with a password.
  if (typeof (pool as Partial<ConnectionPool> | null | undefined)?.query !== 'function') {
    throw new TypeError(`pool must be a connection pool with a query method, not a value of type ${typeof pool}`)
  }
  if (!TABLE_NAME.test(table)) {
    throw new TypeError(`options.table must be a schema and a table, such as "public.plants", not ${table}`)
  }
  const prepare = createPrepare(pool, timeoutMs, onWarning)

  // Naming the key makes the server reject a table without exactly this key, instead of creating duplicates. The
  // collation C never changes with the operating system.
  const insert = `INSERT INTO ${table} (${COLUMNS})`
  const onConflict = 'ON CONFLICT (owner COLLATE "C", id) DO NOTHING'
  const texts = TEXT_NAMES.map((_, i) => `$${i + 3}`)
  const insertPlant = prepare(`${insert} VALUES ($1, $2, ${texts.join(', ')}) ${onConflict}`)
  // Sorted by key, so that concurrent statements can't deadlock. The first create of an id wins.
  const insertPlants = prepare(`${insert} SELECT ${COLUMNS}
    FROM unnest($1::text[], $2::bigint[], ${texts.map((text) => `${text}::text[]`).join(', ')})
      WITH ORDINALITY AS plants (${COLUMNS}, position)
    ORDER BY owner COLLATE "C", id, position ${onConflict} RETURNING owner || ' ' || id`)
  const deletePlant = prepare(`DELETE FROM ${table} WHERE owner = $1 AND id = $2`)
  const select = `FROM ${table} AS plants WHERE owner = $1 AND id >= $2 ORDER BY plants.id LIMIT $3`
  // Ids are text, because an application can configure the driver to parse them as doubles.
  const listPlants = prepare(`SELECT id::text, ${TEXTS} ${select}`)
  // Ends the page one row after $4 bytes, so that a thousand large plants don't fill the memory.
  const listPlantsUpTo = prepare(`SELECT id::text, ${TEXTS} FROM (
      SELECT id, ${TEXTS}, sum(octet_length(concat(${TEXTS})))
        OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS bytes
      FROM (SELECT id, ${TEXTS} ${select}) AS plants
    ) AS plants WHERE (bytes >= $4) IS NOT TRUE ORDER BY plants.id`)
  // Changes nothing, but fails if a create, list or delete would fail. Returns what would make valid plants fail.
  const check = prepare(`WITH created AS (
      ${insert} SELECT owner::text, id::bigint, ${TEXT_NAMES.map((name) => `${name}::text`).join(', ')}
      FROM ${table} WHERE false ${onConflict} RETURNING owner),
    deleted AS (DELETE FROM ${table} WHERE owner = ''::text AND id = 0::bigint AND false)
    SELECT 'the encoding of the database must be UTF8, not ' || current_setting('server_encoding')
      WHERE current_setting('server_encoding') <> 'UTF8'
    UNION ALL SELECT 'drop its other unique index, ' || indexrelid::regclass FROM pg_index
      WHERE indrelid = to_regclass($1) AND indisunique AND NOT ARRAY['owner', 'id']::name[] <@ ARRAY(
        SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey))`)

  const create = batchCreates(async (rows) => {
    // Arrays and rows that are returned take a tenth of the CPU time of a create.
    if (rows.length === 1) return [(await insertPlant([...rows[0]!])).rowCount === 1]
    const columns = rows[0]!.map((_, column) => rows.map((row) => row[column]))
    const created = new Set((await insertPlants(columns)).rows.flat())
    return rows.map(([owner, id]) => created.delete(`${owner} ${id}`))
  }, timeoutMs)

  /** Identical lists share a statement until it's sent. For 32 clients with one token, that saves over half the CPU time. */
  const unsentLists = new Map<string, Promise<Page>>()

  async function readPage(key: string, owner: string, request: PageRequest): Promise<Page> {
    const { limit, maxBytes, after = MIN_INT64 - 1n } = request
    await setImmediate()
    unsentLists.delete(key)
    if (after === MAX_INT64) return { plants: [], hasMore: false }
    // One extra row reveals whether there is a next page.
    const values = [owner, String(after + 1n), limit + 1]
    // Counting the bytes costs a fifth of a small page.
    const { rows } = await (limit <= 10 ? listPlants(values) : listPlantsUpTo([...values, maxBytes]))
    return toPage(rows as unknown as SelectedRow[], request)
  }

  return {
    create: (owner, plant) => create(owner, String(plant.id), ...toTextValues(plant)),
    list(owner, request) {
      const key = [request.limit, request.maxBytes, request.after, owner].join()
      const shared = unsentLists.get(key)
      if (shared !== undefined) return shared.then(encodePlants)
      const page = readPage(key, owner, request)
      unsentLists.set(key, page)
      return page
    },
    delete: async (owner, id) => (await deletePlant([owner, String(id)])).rowCount !== 0,
    async ping() {
      const { rows } = await check([table]).catch((error: unknown) => {
        if ((error as { code?: string }).code !== '42P10') throw error
        throw new Error(`The table ${table} needs the key PRIMARY KEY (owner COLLATE "C", id).`, { cause: error })
      })
      if (rows.length > 0) throw new Error(`The table ${table} can't be used: ${rows.flat().join('; ')}.`)
    },
    migrate: () => applyMigrations(pool, table),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
