import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../../maybe-promise.ts'
import { StoreUnavailableError } from '../../plants/store.ts'
import { Connections } from './connections.ts'
import { isConflict, isNotPrepared, isOutcomeUnknown, isTransient, NoAnswerError } from './failure.ts'
import { AS_TEXT, type LendingPool, type Query, type Queryable, type QueryResult } from './pool.ts'
import { PING, tryWrite, type Statement } from './statements.ts'

/** How often a statement is sent that another one was preferred to. */
const MAX_ATTEMPTS = 5

/** How long the outcome of a write that a ping has tried holds, in milliseconds; less than those wait who ask each second. */
const TRY_INTERVAL_MS = 900

export interface SenderOptions {
  readonly preparedStatements: boolean
  readonly timeoutMs: number
  readonly onWarning: (message: string) => void
}

/** Sends statements, and says in the terms of a store what came of them. */
export class Sender {
  readonly #connections: Connections | undefined
  readonly #sendQuery: (query: Query) => Promise<QueryResult>
  readonly #onWarning: (message: string) => void
  #prepares: boolean
  /** Whether a write has failed since the last plant was created. */
  #isInTrouble = false
  #triedAt = -Infinity
  #latestTry: Promise<void> | undefined

  constructor(pool: Queryable, { preparedStatements, timeoutMs, onWarning }: SenderOptions) {
    this.#prepares = preparedStatements
    this.#onWarning = onWarning
    if (isLending(pool)) {
      const connections = new Connections(pool, timeoutMs)
      this.#connections = connections
      this.#sendQuery = (query) => connections.send(query)
    } else {
      this.#sendQuery = async (query) =>
        // Its own time may be longer, or none.
        withDeadline(pool.query({ ...query, query_timeout: timeoutMs }), timeoutMs, () => new NoAnswerError(timeoutMs))
    }
  }

  /** Has the pool get back what it lent, also if the server says nothing. */
  close(): void {
    this.#connections?.close()
  }

  /**
   * Sends a statement.
   * @param values are emptied when it has succeeded
   * @throws StoreUnavailableError if trying again may help
   */
  async send(statement: Statement, values: unknown[]): Promise<QueryResult> {
    const { name, text, isWrite = false, isCreate = false } = statement
    const query: Query = { text, values, rowMode: 'array', types: AS_TEXT }
    if (this.#prepares && name !== undefined) query.name = name
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await this.#sendQuery(query)
        // A plant that was there already, or is deleted, needs no room.
        if (isCreate && result.rowCount !== 0) this.#isInTrouble = false
        values.length = 0
        return takeOut(result)
      } catch (error) {
        if (isNotPrepared(error) && query.name !== undefined) {
          this.#stopPreparing(error as Error)
          delete query.name
        } else if (isConflict(error) && attempt < MAX_ATTEMPTS) {
          await sleep(Math.random() * 2 ** attempt)
        } else {
          throw this.#explain(error, isWrite)
        }
      }
    }
  }

  /**
   * Asks whether a plant can be created now. Mostly by statements that write nothing. They need no room on the disk and wait
   * for no standby, so after a write has failed, one is tried.
   * @throws StoreUnavailableError if not
   */
  async ping(): Promise<void> {
    if (!this.#isInTrouble) return this.#tryNothing()
    const now = performance.now()
    if (now - this.#triedAt >= TRY_INTERVAL_MS) {
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
      // A constraint of the host, or a trigger, refuses such a plant. That says nothing of others.
      await this.#tryNothing()
    }
    this.#isInTrouble = false
  }

  #stopPreparing({ message }: Error): void {
    if (this.#prepares) {
      this.#onWarning(`A pooler does not keep prepared statements (${message}), so they are not used any more.`)
    }
    this.#prepares = false
  }

  #explain(error: unknown, isWrite: boolean): unknown {
    if (error instanceof StoreUnavailableError || !isTransient(error)) return error
    const isUnknown = isWrite && isOutcomeUnknown(error)
    const options = { cause: error, isOutcomeUnknown: isUnknown }
    this.#isInTrouble ||= isWrite
    return new StoreUnavailableError('The database cannot be used now.', options)
  }
}

/**
 * Takes the rows out of what the driver gave. It keeps that, and the values that it was sent, until the next full
 * collection of garbage, as it keeps functions among the old objects that hold them.
 */
function takeOut(result: QueryResult): QueryResult {
  const { rows, rowCount } = result
  // The result of another driver may be frozen.
  Reflect.set(result, 'rows', [])
  return { rows, rowCount }
}

function isLending(pool: Queryable): pool is LendingPool {
  return typeof pool.connect === 'function'
}
