import { clearInterval, clearTimeout, performance, setInterval, setTimeout } from '../../timers.ts'
import { UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection, type ConnectionPool } from './pool.ts'
import { DATABASE_VERSION, LOOK, type Look } from './statements.ts'

const INTERVAL_MS = 500

/** Asks again until there is one: during a fail-over one may hang, although the next is there at once. */
export function connectSoon(pool: ConnectionPool, ms: number): Promise<Connection> {
  return new Promise((resolve) => {
    let pending = 0
    let isOver = false
    const timer = setInterval(ask, INTERVAL_MS)
    const end = setTimeout(() => clearInterval(timer), ms)
    ask()

    function settle(connecting: Promise<Connection>): void {
      isOver = true
      clearInterval(timer)
      clearTimeout(end)
      resolve(connecting)
    }

    function ask(): void {
      pending++
      // The driver may throw at once, as when a file of certificates is gone.
      const connecting = (async () => pool.connect())()
      connecting.then(
        (connection) => (isOver ? connection.release() : settle(connecting)),
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
export async function checkConnection(connection: Connection, schema: string | null): Promise<Look> {
  const look = JSON.parse((await ask(connection, LOOK.text, [schema]))!) as Look
  if (look.isReadOnly) throw new Error('The server is read-only: a standby, or set so.')
  for (const [side, encoding] of Object.entries({ server: look.serverEncoding, client: look.clientEncoding })) {
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
  }
  if (look.problems !== '') {
    const message = `The table ${look.schema}.plant_store_plants cannot keep plants: ${look.problems}.`
    throw new UnsuitableDatabaseError(message)
  }
  if ((schema ?? look.schema ?? look.currentSchema) === null) {
    throw new Error('The search_path of the session contains no schema that exists and that the role can use.')
  }
  const outdated = await findOutdatedCollation(connection, look)
  if (outdated !== null) {
    // Not an UnsuitableDatabaseError, because the server can be repaired while the service waits.
    throw new Error(
      `The order of ${outdated} may have changed since the indexes of ${look.schema}.plant_store_plants were built, ` +
        'so plants could be missing from lists, or be created twice. Rebuild the indexes, and refresh the version.',
    )
  }
  return look
}

async function findOutdatedCollation(connection: Connection, look: Look): Promise<string | null> {
  if (look.outdated !== null) return `the collation ${look.outdated}`
  const recorded = look.databaseVersion
  if (recorded === null) return null
  const actual = await ask(connection, DATABASE_VERSION.text, [])
  if (actual === recorded) return null
  return `the database's collation (recorded version ${recorded}, actual version ${actual})`
}

async function ask(connection: Connection, text: string, values: unknown[]): Promise<string | null> {
  const { rows } = await connection.query({ name: undefined, text, values, rowMode: 'array', types: AS_TEXT })
  return rows[0]![0] as string | null
}

/** Returns what an operator should know about a table that the store can use. */
export function warningsOf({ schema, isUnlogged, hasRowSecurity, collation }: Look): string[] {
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
export class Silence {
  readonly #ask: () => Promise<boolean>
  #lastOver = 0
  #timer: NodeJS.Timeout | undefined
  isOn = false
  #waiting: (() => void)[] = []

  constructor(ask: () => Promise<boolean>) {
    this.#ask = ask
  }

  /** Begins, unless the server has said something since the unanswered question was sent. */
  begin(askedAt: number): void {
    if (askedAt <= this.#lastOver || this.isOn) return
    this.isOn = true
    const ask = (): void => {
      this.#wake()
      void this.#ask().then((isAnswered) => isAnswered && this.#end())
    }
    this.#timer = setInterval(ask, INTERVAL_MS).unref()
    ask()
  }

  /** Settles when it ends, or is asked again: a promise of the end alone would keep all that wait, for hours. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  stop(): void {
    this.#end()
    this.#lastOver = Infinity
  }

  #end(): void {
    clearInterval(this.#timer)
    this.isOn = false
    this.#lastOver = Math.max(this.#lastOver, performance.now())
    this.#wake()
  }

  #wake(): void {
    for (const goOn of this.#waiting.splice(0)) goOn()
  }
}
