import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../../maybe-promise.ts'
import { StoreUnavailableError } from '../../plants/store.ts'
import { Connections } from './connections.ts'
import {
  isConflict,
  isNotPrepared,
  isOutcomeUnknown,
  isOutOfRoom,
  isTransient,
  NoAnswerError,
  UnconfirmedError,
} from './failure.ts'
import { AS_TEXT, type LendingPool, type Query, type Queryable, type QueryResult } from './pool.ts'
import type { Statement } from './statements.ts'

/** How often a statement is sent that another one was preferred to. */
const MAX_ATTEMPTS = 5

/** How long a write that the server could not keep says that the next one will not be kept either, in milliseconds. */
const TROUBLE_MS = 5000

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
  #trouble: { readonly error: Error; readonly until: number } | undefined

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
    const { name, text, isWrite = false } = statement
    const query: Query = { text, values, rowMode: 'array', types: AS_TEXT }
    if (this.#prepares && name !== undefined) query.name = name
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await this.#sendQuery(query)
        if (isWrite) this.#trouble = undefined
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
   * Asks whether a write would be accepted, by a statement that writes nothing.
   * @throws StoreUnavailableError if not
   */
  async ping(statement: Statement): Promise<void> {
    // What writes nothing needs no room on the disk, and waits for no standby. So what a write met a moment ago counts too.
    if (this.#trouble !== undefined && performance.now() < this.#trouble.until) throw this.#trouble.error
    await this.send(statement, [])
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
    const unavailable = new StoreUnavailableError('The database cannot be used now.', options)
    if (isWrite && (isOutOfRoom(error) || error instanceof UnconfirmedError)) {
      this.#trouble = { error: unavailable, until: performance.now() + TROUBLE_MS }
    }
    return unavailable
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
