/**
 * A store that keeps plants in an SQLite database.
 * @module plant-store/sqlite
 */

import { MAX_TIMER_MS, withDefaults, invalidOption, type Resolved } from '../../legacy/option-checks.ts'
import { wrapEncodedList } from '../../legacy/plants/encoded-list.ts'
import { SEPARATOR, tagOf } from '../../legacy/plants/plant.ts'
import type { Store } from '../../legacy/plants/store.ts'
import { encodeUtf8 } from '../../legacy/plants/text.ts'
import { textLength } from '../../legacy/stores/batch-size.ts'
import { metricsOf } from '../store-metrics.ts'
import { PageBuilder } from '../../legacy/stores/page-builder.ts'
import { openConnection } from './connection.ts'
import type { SqliteHandle } from './handle.ts'
import { INSERT_PLANT, WriteQueue } from './write-queue.ts'

export type { SqliteHandle, SqliteStatement, SqliteValue } from './handle.ts'

/** Options of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /**
   * How long a call waits while another process has the database locked, in milliseconds; 0 or more. After that, the
   * call fails, and the operation isn't executed later. Must be lower than the service's `storeTimeoutMs`.
   * @default 4_000
   */
  readonly busyTimeoutMs?: number | undefined
  /**
   * The maximum number of creates and deletes per commit, at least 1. A commit blocks the event loop, so a batch also
   * ends once it contains about a million characters of names and tags.
   * @default 1_000
   */
  readonly maxBatch?: number | undefined
  /** Whether to create the file and the table if they don't exist. @default true */
  readonly migrate?: boolean | undefined
  /**
   * Called with a one-line warning for the operator, for example that the WAL is large. Warnings never contain plant
   * data. Exceptions that this function throws are ignored.
   * @default a no-op
   */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** A store that keeps plants in an SQLite database. */
export interface SqliteStore extends Store {
  /** Resolves if the store can currently create and delete plants, and rejects otherwise. */
  ping(): Promise<void>
  /**
   * Waits for the queued creates and deletes, and then closes the database if the store opened it. Can be called more
   * than once.
   */
  close(): Promise<void>
  /** Calls `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

const DEFAULT_OPTIONS: Resolved<SqliteStoreOptions> = {
  busyTimeoutMs: 4000,
  maxBatch: 1000,
  migrate: true,
  onWarning: () => undefined,
}

/** How long a ping waits for the write lock. `/readyz` must reflect a change within 2 s. */
const PING_TIMEOUT_MS = 1000

/**
 * Lets SQLite generate the JSON: it's the same text that `encodeFields` would produce, and faster than encoding the
 * plants in JavaScript.
 */
const SELECT_PLANTS = `
  SELECT id, substr(iif(tag IS NULL, json_object('name', name), json_object('name', name, 'tag', tag)), 2) || '${SEPARATOR}'
  FROM main.plants WHERE owner = ?`

/**
 * Creates a store that keeps plants in a SQLite file. Acknowledged writes survive kill -9 and power loss: a create or
 * delete resolves once it is committed with `synchronous=FULL`. Writes that arrive in the same tick of the event loop
 * share a commit.
 *
 * Several processes on the same machine can share a file. If you pass an open database, don't use it for anything else:
 * the store sets pragmas and runs transactions on it. `close` only closes a database that the store opened itself.
 * @param source a path (requires Node 22.13 or later), or an open database from `node:sqlite` or better-sqlite3
 * @throws TypeError if the source or an option is invalid
 * @throws StoreUnavailableError if the file is locked, or for another reason that retrying can resolve
 * @throws Error if the file can't be opened or written, isn't a plant-store database of this schema version, or is
 *   missing or empty although it has a WAL
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
export function sqliteStore(source: string | SqliteHandle, options: SqliteStoreOptions = {}): SqliteStore {
  const resolvedOptions = withDefaults(options, DEFAULT_OPTIONS, { busyTimeoutMs: { min: 0, max: MAX_TIMER_MS } })
  // For SQLite, an empty path means a temporary database that is deleted when it's closed.
  const isPath = typeof source === 'string' && source !== ''
  if (!isPath && typeof (source as Partial<SqliteHandle> | null | undefined)?.prepare !== 'function') {
    throw invalidOption('source', 'a path or an open database', source)
  }
  const connection = openConnection(source, resolvedOptions)
  const insert = connection.prepare(`${INSERT_PLANT} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`)
  const remove = connection.prepare('DELETE FROM main.plants WHERE owner = ? AND id = ?')
  const readFirstPage = connection.prepareQuery(`${SELECT_PLANTS} ORDER BY id LIMIT ?`)
  const readNextPage = connection.prepareQuery(`${SELECT_PLANTS} AND id > ? ORDER BY id LIMIT ?`)
  const readIds = connection.prepareQuery('SELECT id FROM main.plants WHERE owner = ? AND id > ? LIMIT ?')
  const writeQueue = new WriteQueue(connection, {
    ...resolvedOptions,
    onBatch: (size) => metricsOf(store).onBatch(size),
  })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= writeQueue.onIdle().then(() => connection.close()))

  const store: SqliteStore = {
    create(owner, plant) {
      const { id, name } = plant
      const tag = tagOf(plant) ?? null
      return writeQueue.add(() => insert.run(owner, id, name, tag).changes > 0, textLength(plant))
    },
    list: wrapEncodedList((owner, request) =>
      connection.retryWhileBusy(() => {
        const { after } = request
        // One extra row reveals whether there is a next page.
        const limit = request.limit + 1
        const builder = new PageBuilder(request)
        for (const row of after === undefined ? readFirstPage(owner, limit) : readNextPage(owner, after, limit)) {
          const [id, json] = (Array.isArray(row) ? row : Object.values(row as object)) as [bigint, string]
          if (!builder.add(id, encodeUtf8(json))) break
          // The page is full. Only the id of the next plant is read, because the plant itself might be large.
          if (!builder.hasReachedMaxBytes) continue
          builder.hasMore = [...readIds(owner, id, 1)].length > 0
          break
        }
        return builder.page
      }),
    ),
    delete: (owner, id) => writeQueue.add(() => remove.run(owner, id).changes > 0),
    ping: () =>
      connection.retryWhileBusy(
        () => writeQueue.checkWritable(),
        Math.min(PING_TIMEOUT_MS, resolvedOptions.busyTimeoutMs),
      ),
    close,
    [Symbol.asyncDispose]: close,
  }
  metricsOf(store).gauges = [
    [
      'plant_store_sqlite_log_bytes',
      'Bytes in the SQLite WAL before the last commit or ping.',
      () => connection.walBytes,
    ],
  ]
  return store
}
