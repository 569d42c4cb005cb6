import { StoreUnavailableError } from '../../plants/store.ts'
import { performance, sleep } from '../../timers.ts'
import { isConflict, isNotPrepared, isOutcomeUnknown, isPlanStale, isTransient } from './failure.ts'
import { AS_TEXT, type QueryResult } from './pool.ts'
import { PING, tryWrite, type Statement, type TableQuery } from './statements.ts'

const MAX_ATTEMPTS = 5
/** How long a tried write holds, and a write may have no answer: so what a probe says is less than 2 s old. */
const TRUST_MS = 900

type SendQuery = (query: TableQuery, expiresAt: number) => Promise<QueryResult>

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
  /** Whether a write has failed since the last plant was created. */
  #isInTrouble = false
  /** When each write in flight began, the oldest first. */
  readonly #writes = new Set<{ readonly startedAt: number }>()
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
    if (statement.writes === undefined) return this.#send(statement, values, expiresAt)
    const write = { startedAt: performance.now() }
    this.#writes.add(write)
    try {
      return await this.#send(statement, values, expiresAt)
    } finally {
      this.#writes.delete(write)
    }
  }

  async #send(statement: Statement, values: unknown[], expiresAt: number): Promise<QueryResult> {
    const { name, text, writes } = statement
    const query: TableQuery = { text, values, rowMode: 'array', types: AS_TEXT }
    if (this.#prepares && name !== undefined) query.name = name
    let attempt = 1
    for (;;) {
      try {
        const result = await this.#sendQuery(query, expiresAt)
        const { rows, rowCount } = result
        // A plant that was there already, or is deleted, needs no room.
        if (writes === 'plants' && rowCount !== 0) this.#isInTrouble = false
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
          delete query.name
        } else if (isConflict(error) && attempt < MAX_ATTEMPTS) {
          await sleep(Math.random() * 2 ** attempt++)
        } else {
          throw this.#explain(error, writes !== undefined)
        }
      }
    }
  }

  /** The usual statements cannot see a full disk or a missing standby: after a write has failed, another is tried. */
  async ping(): Promise<void> {
    const now = performance.now()
    const [oldest] = this.#writes
    if (oldest !== undefined && now - oldest.startedAt >= TRUST_MS) {
      throw new StoreUnavailableError(`A write has had no answer for ${TRUST_MS} ms.`)
    }
    if (!this.#isInTrouble) return this.#tryNothing()
    if (now - this.#triedAt >= TRUST_MS) {
      this.#triedAt = now
      this.#latestTry = this.#tryWrite()
    }
    return this.#latestTry
  }

  async #tryNothing(): Promise<void> {
    for (const statement of PING) await this.send(statement, [])
  }

  async #tryWrite(): Promise<void> {
    try {
      await this.send(tryWrite(Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)), [])
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error
      // A constraint or trigger of the host refuses this plant, which says nothing of others.
      await this.#tryNothing()
    }
    this.#isInTrouble = false
  }

  #explain(error: unknown, isWrite: boolean): unknown {
    if (error instanceof StoreUnavailableError || !isTransient(error)) return error
    this.#isInTrouble ||= isWrite
    const options = { cause: error, isOutcomeUnknown: isWrite && isOutcomeUnknown(error) }
    return new StoreUnavailableError('The database cannot be used now.', options)
  }
}
