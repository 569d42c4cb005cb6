import { clearInterval, clearTimeout, performance, setInterval, setTimeout } from '../../timers.ts'
import { UnsuitableDatabaseError } from './errors.ts'
import { RAW_TEXT_TYPES, type Connection, type ConnectionPool } from './pool.ts'
import { DATABASE_COLLATION_VERSION, INSPECT_TABLE, type TableInspection } from './statements.ts'

const RETRY_INTERVAL_MS = 500

/** Asks again until there is one: during a fail-over one may hang, although the next is there at once. */
export function connectWithRetry(pool: ConnectionPool, timeoutMs: number): Promise<Connection> {
  return new Promise((resolve) => {
    let pending = 0
    let isSettled = false
    const retryTimer = setInterval(connect, RETRY_INTERVAL_MS)
    const deadlineTimer = setTimeout(() => clearInterval(retryTimer), timeoutMs)
    connect()

    function settle(connecting: Promise<Connection>): void {
      isSettled = true
      clearInterval(retryTimer)
      clearTimeout(deadlineTimer)
      resolve(connecting)
    }

    function connect(): void {
      pending++
      // The driver may throw at once, as when a file of certificates is gone.
      const connecting = (async () => pool.connect())()
      connecting.then(
        (connection) => (isSettled ? connection.release() : settle(connecting)),
        () => --pending === 0 && settle(connecting),
      )
    }
  })
}

/**
 * Checks whether a connection can be used: a read-only one may lead to a standby.
 * @param schema where the table was found before; null if it hasn't been found yet
 * @throws UnsuitableDatabaseError if somebody has to change the database first
 */
export async function checkConnection(connection: Connection, schema: string | null): Promise<TableInspection> {
  const inspection = JSON.parse((await queryValue(connection, INSPECT_TABLE.text, [schema]))!) as TableInspection
  if (inspection.isReadOnly) throw new Error('The server is read-only: a standby, or set so.')
  for (const [side, encoding] of Object.entries({
    server: inspection.serverEncoding,
    client: inspection.clientEncoding,
  })) {
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
  }
  if (inspection.problems !== '') {
    const message = `The table ${inspection.schema}.plant_store_plants cannot keep plants: ${inspection.problems}.`
    throw new UnsuitableDatabaseError(message)
  }
  if ((schema ?? inspection.schema ?? inspection.currentSchema) === null) {
    throw new Error('The search_path of the session contains no schema that exists and that the role can use.')
  }
  const outdatedCollation = await findOutdatedCollation(connection, inspection)
  if (outdatedCollation !== null) {
    // Not an UnsuitableDatabaseError, because the server can be repaired while the service waits.
    throw new Error(
      `The order of ${outdatedCollation} may have changed since the indexes of ${inspection.schema}.plant_store_plants were built, ` +
        'so plants could be missing from lists, or be created twice. Rebuild the indexes, and refresh the version.',
    )
  }
  return inspection
}

async function findOutdatedCollation(connection: Connection, inspection: TableInspection): Promise<string | null> {
  if (inspection.outdated !== null) return `the collation ${inspection.outdated}`
  const recorded = inspection.databaseVersion
  if (recorded === null) return null
  const actual = await queryValue(connection, DATABASE_COLLATION_VERSION.text, [])
  if (actual === recorded) return null
  return `the database's collation (recorded version ${recorded}, actual version ${actual})`
}

async function queryValue(connection: Connection, text: string, values: unknown[]): Promise<string | null> {
  const { rows } = await connection.query({ name: undefined, text, values, rowMode: 'array', types: RAW_TEXT_TYPES })
  return rows[0]![0] as string | null
}

/** Returns what an operator should know about a table that the store can use. */
export function warningsOf({ schema, isUnlogged, hasRowSecurity, collation }: TableInspection): string[] {
  const table = `${schema}.plant_store_plants`
  const warnings: string[] = []
  if (isUnlogged) warnings.push(`The table ${table} is unlogged, so a crash of the server empties it.`)
  if (hasRowSecurity) {
    warnings.push(
      `Row-level security applies to this role in the table ${table}: it can hide plants, or reject new ones.`,
    )
  }
  if (collation !== null) {
    warnings.push(
      `The column owner of ${table} has the collation ${collation}, not C: its order can change with the operating ` +
        'system, and plants are missing until the indexes are rebuilt.',
    )
  }
  return warnings
}

/** Asks a silent server, as behind a broken network, until it says something again. */
export class OutageDetector {
  readonly #probe: () => Promise<boolean>
  #lastResponseAt = 0
  #timer: NodeJS.Timeout | undefined
  isActive = false
  #waiters: (() => void)[] = []

  constructor(probe: () => Promise<boolean>) {
    this.#probe = probe
  }

  /** Begins, unless the server has said something since the unanswered question was sent. */
  begin(sentAt: number): void {
    if (sentAt <= this.#lastResponseAt || this.isActive) return
    this.isActive = true
    const probe = (): void => {
      this.#notifyWaiters()
      void this.#probe().then((isResponding) => isResponding && this.#end())
    }
    this.#timer = setInterval(probe, RETRY_INTERVAL_MS).unref()
    probe()
  }

  /** Settles when it ends, or is asked again: a promise of the end alone would keep all that wait, for hours. */
  nextProbe(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  stop(): void {
    this.#end()
    this.#lastResponseAt = Infinity
  }

  #end(): void {
    clearInterval(this.#timer)
    this.isActive = false
    this.#lastResponseAt = Math.max(this.#lastResponseAt, performance.now())
    this.#notifyWaiters()
  }

  #notifyWaiters(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}
