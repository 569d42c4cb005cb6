/**
 * The store that keeps plants in an SQLite file.
 * @module plant-store/sqlite
 */

import { MAX_TIMER_MS, withDefaults, invalidOption, type Resolved } from '../../option-checks.ts'
import { wrapEncodedList } from '../../plants/encoded-list.ts'
import { SEPARATOR, tagOf } from '../../plants/plant.ts'
import type { Store } from '../../plants/store.ts'
import { encodeUtf8 } from '../../plants/text.ts'
import { textLength } from '../batch-size.ts'
import { metricsOf } from '../store-metrics.ts'
import { PageBuilder } from '../page-builder.ts'
import { openConnection } from './connection.ts'
import type { SqliteHandle } from './handle.ts'
import { INSERT_PLANT, WriteQueue } from './write-queue.ts'

export type { SqliteHandle, SqliteStatement, SqliteValue } from './handle.ts'

/** Options of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /**
   * How long a call waits while another process has the file locked, in milliseconds, 0 or more. Then it fails, and is
   * not run later. Keep it below `storeTimeoutMs` of the service.
   * @default 4_000
   */
  readonly busyTimeoutMs?: number | undefined
  /**
   * The most creates and deletes that share a commit, and hold up the event loop together, at least 1. Of large plants
   * a megabyte or so shares one.
   * @default 1_000
   */
  readonly maxBatch?: number | undefined
  /** Whether the file and the table are made if there are none. @default true */
  readonly migrate?: boolean | undefined
  /** Gets lines for an operator, with nothing of the plants. Its own errors are ignored. @default nobody gets them */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** A store of plants in SQLite. */
export interface SqliteStore extends Store {
  ping(): Promise<void>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const DEFAULT_OPTIONS: Resolved<SqliteStoreOptions> = {
  busyTimeoutMs: 4000,
  maxBatch: 1000,
  migrate: true,
  onWarning: () => undefined,
}

/** How long a ping waits for a lock: whether the store can serve must be known within 2 seconds of a change. */
const PING_TIMEOUT_MS = 1000

/** SQLite makes the JSON text of the response, as `encodeRest` would: that takes less time than encoding it here. */
const SELECT_PLANTS = `
  SELECT id, substr(iif(tag IS NULL, json_object('name', name), json_object('name', name, 'tag', tag)), 2) || '${SEPARATOR}'
  FROM main.plants WHERE owner = ?`

/**
 * Keeps plants in an SQLite file, through kill -9 and power loss: a create or delete settles once it is committed with
 * `synchronous=FULL`. Those that arrive in the same round of the event loop share a commit.
 *
 * Processes of one machine may share a file. An open database that the store was given is its own while it is in use:
 * the store sets pragmas and runs transactions on it. `close` closes a file that the store opened itself.
 * @param source a path, which takes Node 22.13 or later; or an open database of `node:sqlite` or better-sqlite3
 * @throws TypeError if the source or an option is wrong
 * @throws StoreUnavailableError if the file is locked, or trying again may help for another reason
 * @throws Error if the file cannot be opened or written, holds anything but plants in this version's schema, or is
 *   missing or empty while its log is not
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
  // An empty path is SQLite's name for a file that it deletes when it is closed.
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
        // One more than fits the page shows whether more follow.
        const limit = request.limit + 1
        const builder = new PageBuilder(request)
        for (const row of after === undefined ? readFirstPage(owner, limit) : readNextPage(owner, after, limit)) {
          const [id, json] = (Array.isArray(row) ? row : Object.values(row as object)) as [bigint, string]
          if (!builder.add(id, encodeUtf8(json))) break
          // The next plant can be large, so only its id is read.
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
      'Size of the log of the SQLite file before the last commit or ping.',
      () => connection.walBytes,
    ],
  ]
  return store
}
