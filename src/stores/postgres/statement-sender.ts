import { StoreUnavailableError } from '../../plants/store.ts'
import { clearTimeout, performance, setTimeout, sleep } from '../../timers.ts'
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
/** How long a probe's result is valid, and how long a write can be unanswered: health checks lag less than 2 s. */
const PROBE_TTL_MS = 900
/** How long a ping waits for its own result if a write succeeds meanwhile. Health checks wait 100 ms longer. */
const PING_GRACE_MS = 800

// One round trip for both: the server may be far away.
const PING_TOGETHER = unprepared((table) => CHECK_WRITABLE.map(({ text }) => text(table)).join(';'))

/** @param onSend called when a connection is there, and the query is about to be sent */
type SendQuery = (query: TableQuery, expiresAt: number, onSend?: () => void) => Promise<QueryResult>

export interface StatementSenderOptions {
  readonly preparedStatements: boolean
  readonly timeoutMs: number
  readonly onWarning: (message: string) => void
}

/** Sends statements, and turns their errors into those of a store. */
export class StatementSender {
  readonly #sendQuery: SendQuery
  readonly #options: StatementSenderOptions
  #usesPreparedStatements: boolean
  /** The kinds of writes of which one has failed, and none has succeeded since. */
  readonly #failedWrites = new Set<Statement['writes']>()
  /** When each write in flight was sent, the oldest first. Waiting for a connection to a far server takes seconds. */
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

  createDeadline(): number {
    return performance.now() + this.#options.timeoutMs
  }

  /** Empties `values` once it has succeeded. @throws StoreUnavailableError if trying again may help */
  async send(statement: Statement, values: unknown[], expiresAt: number = this.createDeadline()): Promise<QueryResult> {
    const { writes } = statement
    if (writes === undefined) return this.#send(statement, values, expiresAt)
    try {
      const result = await this.#send(statement, values, expiresAt)
      // Rejecting a duplicate, or deleting nothing, needs neither disk space nor a transaction ID.
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
        // The driver keeps both for long. The result of another driver may be frozen.
        values.length = 0
        Reflect.set(result, 'rows', [])
        return { rows, rowCount }
      } catch (error) {
        if (query.name !== undefined && (isPreparedStatementError(error) || isPlanStale(error))) {
          if (isPreparedStatementError(error) && this.#usesPreparedStatements) {
            this.#usesPreparedStatements = false
            const { message } = error as Error
            const warning = `A pooler does not keep prepared statements (${message}), so they are not used any more.`
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

  /** Statements that change nothing can't detect a full disk or a missing standby: once a write has failed, try one. */
  async ping(): Promise<void> {
    const now = performance.now()
    const [oldest] = this.#inFlight
    if (oldest !== undefined && now - oldest.sentAt >= PROBE_TTL_MS) {
      throw new StoreUnavailableError(`A write has had no answer for ${PROBE_TTL_MS} ms.`)
    }
    if (this.#failedWrites.size === 0) return this.#pingOrDetectWrite(now)
    if (now - this.#lastProbeAt >= PROBE_TTL_MS) {
      this.#lastProbeAt = now
      this.#lastProbe = this.#probeWrite()
    }
    return this.#lastProbe
  }

  /** A ping that waits for a connection to a far server can take too long although writes succeed, so a write counts too. */
  #pingOrDetectWrite(since: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#lastWriteAt >= since && resolve(), PING_GRACE_MS)
      const pinging = this.#checkWritable().finally(() => clearTimeout(timer))
      pinging.then(resolve, reject)
    })
  }

  async #checkWritable(): Promise<void> {
    await this.send(PING_TOGETHER, [])
  }

  async #probeWrite(): Promise<void> {
    try {
      const probe = probeWrite(Math.floor(Math.random() * Number.MAX_SAFE_INTEGER))
      await this.#send(probe, [], this.createDeadline())
    } catch (error) {
      if (!isRejectedValue(error)) throw error
      // A constraint or trigger of the host rejects the probe's plant, which says nothing of others.
      await this.#checkWritable()
    }
    this.#failedWrites.clear()
  }
}

function toStoreError(error: unknown, isWrite: boolean): unknown {
  if (error instanceof StoreUnavailableError || !isTransient(error)) return error
  const options = { cause: error, isOutcomeUnknown: isWrite && isOutcomeUnknown(error) }
  return new StoreUnavailableError('The database cannot be used now.', options)
}
