import { isTransient, UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection, type Query, type QueryResult } from './pool.ts'

const SETTINGS = `current_setting('transaction_read_only'), current_setting('server_encoding'),
    current_setting('client_encoding')`

/** Each standby that is promoted begins a timeline. On a standby nobody asks for it, as that would fail. */
const LINEAGE = `(SELECT system_identifier FROM pg_control_system()),
    CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END`

/** Not prepared, since it is asked once. */
const CHECK: Query = { text: `SELECT ${SETTINGS}, ${LINEAGE}`, values: [], rowMode: 'array', types: AS_TEXT }

/** For what speaks the protocol of PostgreSQL and has no timelines. */
const PLAIN_CHECK: Query = { ...CHECK, text: `SELECT ${SETTINGS}` }

/** A connection leads to a server that takes no writes. It may be a standby, whose plants are old. */
export class ReadOnlyServerError extends Error {
  static {
    this.prototype.name = 'ReadOnlyServerError'
  }
}

/** A connection leads to a server that has not noticed that another one was promoted in its place. */
export class ReplacedServerError extends Error {
  static {
    this.prototype.name = 'ReplacedServerError'
  }
}

/** Asks whether connections are fit for plants, and remembers which server is the newest. */
export class ConnectionCheck {
  readonly #patienceMs: number
  #query = CHECK
  #system: string | undefined
  /** The newest timeline of the system that was met; eight hexadecimal digits. */
  #timeline = ''
  /** Since when only older ones have been met. */
  #olderSince = Infinity

  /** @param patienceMs after so long an older server is the one that is meant, as if a backup was gone back to */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  /**
   * Asks in one round trip. Returns whether the server has taken over from those that were met before.
   * @throws ReadOnlyServerError
   * @throws ReplacedServerError
   * @throws UnsuitableDatabaseError
   */
  async run(connection: Connection): Promise<boolean> {
    const { rows } = await this.#ask(connection)
    const [isReadOnly, serverEncoding, clientEncoding, system, timeline] = rows[0] as readonly string[]
    if (isReadOnly === 'on') throw new ReadOnlyServerError('The server is read-only: a standby, or set so.')
    requireUtf8('server', serverEncoding)
    requireUtf8('client', clientEncoding)
    return timeline !== undefined && this.#compare(system!, timeline)
  }

  async #ask(connection: Connection): Promise<QueryResult> {
    const query = this.#query
    try {
      return await connection.query({ ...query })
    } catch (error) {
      if (query === PLAIN_CHECK || isTransient(error)) throw error
      this.#query = PLAIN_CHECK
      return connection.query({ ...PLAIN_CHECK })
    }
  }

  #compare(system: string, timeline: string): boolean {
    const isSame = system === this.#system
    if (isSame && timeline < this.#timeline) {
      this.#olderSince = Math.min(this.#olderSince, performance.now())
      if (performance.now() - this.#olderSince < this.#patienceMs) {
        throw new ReplacedServerError(
          `The server was replaced: its timeline is ${timeline}, the newest ${this.#timeline}.`,
        )
      }
    }
    const isNewer = isSame && timeline > this.#timeline
    this.#olderSince = Infinity
    this.#system = system
    this.#timeline = timeline
    return isNewer
  }
}

function requireUtf8(side: string, encoding: string | undefined): void {
  if (encoding === 'UTF8') return
  throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
}
