import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { clearTimeout, performance, setTimeout, sleep } from '../../legacy/timers.ts'
import {
  isConflict,
  isPreparedStatementError,
  isOutcomeUnknown,
  isPlanStale,
  isRejectedValue,
  isTransient,
} from './errors.ts'
import { RAW_TEXT_TYPES, type QueryResult } from './pool.ts'
import { CHECK_WRITABLE, probeWrite, unprepared, type Statement, type TableQuery } from './statements.ts'

const MAX_ATTEMPTS = 5
/**
 * How long the result of a write probe is valid, and how long a write may take before pings fail, in milliseconds.
 * `/readyz` must reflect a change within 2 s.
 */
const PROBE_TTL_MS = 900
/**
 * How long a ping waits for its own statements before a successful write counts instead, in milliseconds. Health checks
 * wait 100 ms longer than that.
 */
const PING_GRACE_MS = 800

// Sent as one query, because the server might be far away.
const CHECK_WRITABLE_TOGETHER = unprepared((table) => CHECK_WRITABLE.map(({ text }) => text(table)).join(';'))

/** @param onSend called when a connection is available, just before the query is sent */
type SendQuery = (query: TableQuery, expiresAt: number, onSend?: () => void) => Promise<QueryResult>

interface StatementSenderOptions {
  readonly preparedStatements: boolean
  readonly timeoutMs: number
  readonly onWarning: (message: string) => void
}

/** Sends statements, retries them if necessary, converts their errors, and tracks whether writes are working. */
export class StatementSender {
  readonly #sendQuery: SendQuery
  readonly #options: StatementSenderOptions
  #usesPreparedStatements: boolean
  /** The kinds of writes that have failed, and haven't succeeded since. */
  readonly #failedWrites = new Set<Statement['writes']>()
  /** The writes in flight, oldest first. The wait for a connection, which may take seconds, doesn't count. */
  readonly #inFlight = new Set<{ sentAt: number }>()
  /** When a write last succeeded. */
  #lastWriteAt = -Infinity
  #lastProbeAt = -Infinity
  #lastProbe: Promise<void> | undefined

  constructor(sendQuery: SendQuery, options: StatementSenderOptions) {
    this.#sendQuery = sendQuery
    this.#options = options
    this.#usesPreparedStatements = options.preparedStatements
  }

  /** Returns the `performance.now()` time at which a call that starts now expires. */
  createDeadline(): number {
    return performance.now() + this.#options.timeoutMs
  }

  /**
   * Sends a statement. Empties `values` once the statement has succeeded.
   * @throws StoreUnavailableError if retrying can help
   */
  async send(statement: Statement, values: unknown[], expiresAt: number = this.createDeadline()): Promise<QueryResult> {
    const { writes } = statement
    if (writes === undefined) return this.#send(statement, values, expiresAt)
    try {
      const result = await this.#send(statement, values, expiresAt)
      // A write that changed no row doesn't prove that writes work: it needs neither disk space nor a transaction ID.
      if (result.rowCount !== 0) {
        this.#failedWrites.delete(writes)
        this.#lastWriteAt = performance.now()
      }
      return result
    } catch (error) {
      if (!isRejectedValue(error)) this.#failedWrites.add(writes)
      throw error
    }
  }

  async #send(statement: Statement, values: unknown[], expiresAt: number): Promise<QueryResult> {
    const { name, text, writes } = statement
    const prepared = this.#usesPreparedStatements ? name : undefined
    const query: TableQuery = { name: prepared, text, values, rowMode: 'array', types: RAW_TEXT_TYPES }
    const inFlightWrite = { sentAt: 0 }
    const onSend = (): void => {
      inFlightWrite.sentAt = performance.now()
      this.#inFlight.add(inFlightWrite)
    }
    let attempt = 1
    for (;;) {
      try {
        const result = await this.#sendQuery(query, expiresAt, writes === undefined ? undefined : onSend)
        const { rows, rowCount } = result
        // Free the memory: the driver keeps `values` and `result` for a long time. `Reflect.set` doesn't throw if
        // another driver's result is frozen.
        values.length = 0
        Reflect.set(result, 'rows', [])
        return { rows, rowCount }
      } catch (error) {
        if (query.name !== undefined && (isPreparedStatementError(error) || isPlanStale(error))) {
          if (isPreparedStatementError(error) && this.#usesPreparedStatements) {
            this.#usesPreparedStatements = false
            const { message } = error as Error
            const warning = `The connection pooler does not keep prepared statements (${message}), so the store stops using them.`
            this.#options.onWarning(warning)
          }
          query.name = undefined
        } else if (isConflict(error) && attempt < MAX_ATTEMPTS) {
          await sleep(Math.random() * 2 ** attempt++)
        } else {
          throw toStoreError(error, writes !== undefined)
        }
      } finally {
        this.#inFlight.delete(inFlightWrite)
      }
    }
  }

  /**
   * Checks that the store can create and delete plants. While writes are failing, this actually writes a plant, because
   * statements that change nothing can't detect a full disk or a missing synchronous standby.
   */
  async ping(): Promise<void> {
    const now = performance.now()
    const [oldest] = this.#inFlight
    if (oldest !== undefined && now - oldest.sentAt >= PROBE_TTL_MS) {
      throw new StoreUnavailableError(`A write has been waiting for a response for more than ${PROBE_TTL_MS} ms.`)
    }
    if (this.#failedWrites.size === 0) return this.#pingOrDetectWrite(now)
    if (now - this.#lastProbeAt >= PROBE_TTL_MS) {
      this.#lastProbeAt = now
      this.#lastProbe = this.#probeWrite()
    }
    return this.#lastProbe
  }

  /**
   * Resolves when the ping's own statements succeed, or after PING_GRACE_MS if a write has succeeded since the ping
   * started: a ping that waits for a connection to a distant server might take too long although writes succeed.
   */
  #pingOrDetectWrite(since: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#lastWriteAt >= since && resolve(), PING_GRACE_MS)
      const pinging = this.#checkWritable().finally(() => clearTimeout(timer))
      pinging.then(resolve, reject)
    })
  }

  async #checkWritable(): Promise<void> {
    await this.send(CHECK_WRITABLE_TOGETHER, [])
  }

  async #probeWrite(): Promise<void> {
    try {
      const probe = probeWrite(Math.floor(Math.random() * Number.MAX_SAFE_INTEGER))
      await this.#send(probe, [], this.createDeadline())
    } catch (error) {
      if (!isRejectedValue(error)) throw error
      // A constraint or trigger has rejected the probe's plant, so the probe says nothing about other plants.
      await this.#checkWritable()
    }
    this.#failedWrites.clear()
  }
}

function toStoreError(error: unknown, isWrite: boolean): unknown {
  if (error instanceof StoreUnavailableError || !isTransient(error)) return error
  const options = { cause: error, isOutcomeUnknown: isWrite && isOutcomeUnknown(error) }
  return new StoreUnavailableError('The database is unavailable.', options)
}
