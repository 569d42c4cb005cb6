import { StoreUnavailableError } from '../../plants/store.ts'
import { clearTimeout, performance, setTimeout, sleep } from '../../timers.ts'
import { isConflict, isNotPrepared, isOutcomeUnknown, isPlanStale, isRejectedValue, isTransient } from './failure.ts'
import { AS_TEXT, type QueryResult } from './pool.ts'
import { PING, tryWrite, unprepared, type Statement, type TableQuery } from './statements.ts'

const MAX_ATTEMPTS = 5
/** How long a probe's result is valid, and how long a write can be unanswered: health checks lag less than 2 s. */
const TRUST_MS = 900
/** How long a ping waits for its own result if a write succeeds meanwhile. Health checks wait 100 ms longer. */
const PATIENCE_MS = 800

// One round trip for both: the server may be far away.
const PING_TOGETHER = unprepared((table) => PING.map(({ text }) => text(table)).join(';'))

/** @param onSend called when a connection is there, and the query is about to be sent */
type SendQuery = (query: TableQuery, expiresAt: number, onSend?: () => void) => Promise<QueryResult>

export interface SenderOptions {
  readonly preparedStatements: boolean
  readonly timeoutMs: number
  readonly onWarning: (message: string) => void
}

/** Sends statements, and turns their errors into those of a store. */
export class Sender {
  readonly #sendQuery: SendQuery
  readonly #options: SenderOptions
  #prepares: boolean
  /** The kinds of writes of which one has failed, and none has succeeded since. */
  readonly #failedWrites = new Set<Statement['writes']>()
  /** When each write in flight was sent, the oldest first. Waiting for a connection to a far server takes seconds. */
  readonly #inFlight = new Set<{ sentAt: number }>()
  /** When a write last succeeded. */
  #writtenAt = -Infinity
  #triedAt = -Infinity
  #latestTry: Promise<void> | undefined

  constructor(sendQuery: SendQuery, options: SenderOptions) {
    this.#sendQuery = sendQuery
    this.#options = options
    this.#prepares = options.preparedStatements
  }

  deadline(): number {
    return performance.now() + this.#options.timeoutMs
  }

  /** Empties `values` once it has succeeded. @throws StoreUnavailableError if trying again may help */
  async send(statement: Statement, values: unknown[], expiresAt: number = this.deadline()): Promise<QueryResult> {
    const { writes } = statement
    if (writes === undefined) return this.#send(statement, values, expiresAt)
    try {
      const result = await this.#send(statement, values, expiresAt)
      // Rejecting a duplicate, or deleting nothing, needs neither disk space nor a transaction ID.
      if (result.rowCount !== 0) {
        this.#failedWrites.delete(writes)
        this.#writtenAt = performance.now()
      }
      return result
    } catch (error) {
      if (!isRejectedValue(error)) this.#failedWrites.add(writes)
      throw error
    }
  }

  async #send(statement: Statement, values: unknown[], expiresAt: number): Promise<QueryResult> {
    const { name, text, writes } = statement
    const prepared = this.#prepares ? name : undefined
    const query: TableQuery = { name: prepared, text, values, rowMode: 'array', types: AS_TEXT }
    const write = { sentAt: 0 }
    const onSend = (): void => {
      write.sentAt = performance.now()
      this.#inFlight.add(write)
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
        if (query.name !== undefined && (isNotPrepared(error) || isPlanStale(error))) {
          if (isNotPrepared(error) && this.#prepares) {
            this.#prepares = false
            const { message } = error as Error
            const warning = `A pooler does not keep prepared statements (${message}), so they are not used any more.`
            this.#options.onWarning(warning)
          }
          query.name = undefined
        } else if (isConflict(error) && attempt < MAX_ATTEMPTS) {
          await sleep(Math.random() * 2 ** attempt++)
        } else {
          throw explain(error, writes !== undefined)
        }
      } finally {
        this.#inFlight.delete(write)
      }
    }
  }

  /** Statements that change nothing can't detect a full disk or a missing standby: once a write has failed, try one. */
  async ping(): Promise<void> {
    const now = performance.now()
    const [oldest] = this.#inFlight
    if (oldest !== undefined && now - oldest.sentAt >= TRUST_MS) {
      throw new StoreUnavailableError(`A write has had no answer for ${TRUST_MS} ms.`)
    }
    if (this.#failedWrites.size === 0) return this.#pingOrSeeWrite(now)
    if (now - this.#triedAt >= TRUST_MS) {
      this.#triedAt = now
      this.#latestTry = this.#tryWrite()
    }
    return this.#latestTry
  }

  /** A ping that waits for a connection to a far server can take too long although writes succeed, so a write counts too. */
  #pingOrSeeWrite(since: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#writtenAt >= since && resolve(), PATIENCE_MS)
      const settled = this.#tryNothing().finally(() => clearTimeout(timer))
      settled.then(resolve, reject)
    })
  }

  async #tryNothing(): Promise<void> {
    await this.send(PING_TOGETHER, [])
  }

  async #tryWrite(): Promise<void> {
    try {
      const probe = tryWrite(Math.floor(Math.random() * Number.MAX_SAFE_INTEGER))
      await this.#send(probe, [], this.deadline())
    } catch (error) {
      if (!isRejectedValue(error)) throw error
      // A constraint or trigger of the host rejects the probe's plant, which says nothing of others.
      await this.#tryNothing()
    }
    this.#failedWrites.clear()
  }
}

function explain(error: unknown, isWrite: boolean): unknown {
  if (error instanceof StoreUnavailableError || !isTransient(error)) return error
  const options = { cause: error, isOutcomeUnknown: isWrite && isOutcomeUnknown(error) }
  return new StoreUnavailableError('The database cannot be used now.', options)
}
