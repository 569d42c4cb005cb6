/**
 * A store that keeps plants in a SQLite database.
 * @module plant-store/sqlite
 */

import type { StatementSync } from 'node:sqlite'
import { MAX_INT64, MIN_INT64 } from '../../plants/plant.ts'
import type { PageRequest, Store } from '../../plants/store.ts'
import { COLUMNS, TEXTS, toPage, toTextValues, type SelectedRow, type TextValues } from '../rows.ts'
import { openDatabaseFile, type DatabaseFile } from './database-file.ts'
import { createWriteQueue } from './write-queue.ts'

/** Options of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /**
   * How long a call waits for a file that another process has locked, in milliseconds, from 0 to 1,000. Waiting blocks
   * the event loop.
   * @default 1_000
   */
  readonly busyTimeoutMs?: number | undefined
  /** Whether to create the file and the table if they don't exist. @default true */
  readonly migrate?: boolean | undefined
}

/** A store that keeps plants in a SQLite database. */
export interface SqliteStore extends Store {
  /** Throws if the store can't create and delete plants now. */
  ping(): void
  /** Waits for the queued creates and deletes, and then closes the database. Can be called more than once. */
  close(): Promise<void>
  /** Calls `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The maximum and the default of {@link SqliteStoreOptions.busyTimeoutMs}. */
export const MAX_BUSY_TIMEOUT_MS = 1000

const INSERT = `INSERT INTO plants (${COLUMNS})`
/** Naming the key makes SQLite reject a table without exactly this key, and report other duplicates as errors. */
const ON_CONFLICT = 'ON CONFLICT (owner COLLATE BINARY, id) DO NOTHING'

/** Reading some rows at a time is faster than an iterator, and takes little memory even if each of them is large. */
const MAX_ROWS = 16

/**
 * Creates a store that keeps plants in a SQLite file. Acknowledged writes survive kill -9 and power loss: a create or
 * delete resolves once it is committed with `synchronous=FULL`. Writes that arrive in the same tick of the event loop
 * share a commit. Several processes on the same machine can share a file. Needs Node 22.13 or later.
 * @param path the path of the file, which is created with mode 600 if it doesn't exist
 * @throws TypeError if the path looks like a mistake, or an option is invalid
 * @throws StoreUnavailableError if the file is locked, or for another reason that retrying can resolve
 * @throws Error if the file can't be opened or written, isn't a plant-store database, or is missing or empty although it
 *   has a WAL (`-wal`); the file is left unchanged
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createPlantStore } from 'plant-store'
 * import { sqliteStore } from 'plant-store/sqlite'
 *
 * const store = sqliteStore('plants.db')
 * const plants = createPlantStore({ store, tokens: { 'a-long-random-token': 'ada' } })
 *
 * createServer(plants).listen(3000)
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  const { busyTimeoutMs = MAX_BUSY_TIMEOUT_MS, migrate = true } = options
  if (!Number.isInteger(busyTimeoutMs) || busyTimeoutMs < 0 || busyTimeoutMs > MAX_BUSY_TIMEOUT_MS) {
    throw new TypeError(`options.busyTimeoutMs must be a whole number from 0 to ${MAX_BUSY_TIMEOUT_MS}`)
  }
  return openDatabaseFile(path, { busyTimeoutMs, migrate }, createStore)
}

function createStore(file: DatabaseFile): SqliteStore {
  const { database, toStoreError, checkPath } = file
  const insert = database.prepare(`${INSERT} VALUES (${COLUMNS.replaceAll(/\w+/g, '?')}) ${ON_CONFLICT}`)
  const remove = database.prepare('DELETE FROM plants WHERE owner = ? AND id = ?')
  const insertNothing = database.prepare(`${INSERT} SELECT ${COLUMNS} FROM plants WHERE false ${ON_CONFLICT}`)
  const select = database.prepare(`SELECT id, ${TEXTS} FROM plants WHERE owner = ? AND id >= ? ORDER BY id LIMIT ?`)
  // As numbers, ids beyond 2^53 would be rounded.
  select.setReadBigInts(true)
  // Arrays are faster than objects. Node before 22.16 only returns objects.
  if ('setReturnArrays' in select) select.setReturnArrays(true)
  const queue = createWriteQueue(file)
  let isOpen = true
  // Fails if the file is read-only, which SQLite opens for reading.
  insertNothing.run()

  async function close(): Promise<void> {
    // Writes are committed in order: when this one has settled, the others have too.
    await queue.add(() => true).catch(() => undefined)
    if (isOpen) database.close()
    isOpen = false
  }

  return {
    create: (owner, plant) => queue.add(() => insert.run(owner, plant.id, ...toTextValues(plant)).changes > 0),
    delete: (owner, id) => queue.add(() => remove.run(owner, id).changes > 0),
    list(owner, request) {
      try {
        return toPage(readRows(select, owner, request), request)
      } catch (error) {
        throw toStoreError(error)
      }
    },
    ping() {
      checkPath()
      queue.checkWritable(() => insertNothing.run())
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Reads rows until the caller has enough of them. */
function* readRows(select: StatementSync, owner: string, { limit, after }: PageRequest): Generator<SelectedRow> {
  let from = after === undefined ? MIN_INT64 : after + 1n
  // One extra row reveals whether there is a next page.
  for (let missing = limit + 1; missing > 0 && from <= MAX_INT64; missing -= MAX_ROWS) {
    const rows = select.all(owner, from, Math.min(missing, MAX_ROWS))
    for (const row of rows) {
      const values = (Array.isArray(row) ? row : Object.values(row)) as [bigint, ...TextValues]
      yield values
      from = values[0] + 1n
    }
    if (rows.length < MAX_ROWS) return
  }
}
