import { clearInterval, clearTimeout, performance, setInterval, setTimeout } from '../../timers.ts'
import { UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection, type ConnectionPool } from './pool.ts'
import { LOOK } from './statements.ts'

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

/** Asks if a connection is fit: a read-only one may be a standby's. @throws UnsuitableDatabaseError if it stays so */
export async function checkConnection(
  connection: Connection,
  known: string | null,
): Promise<{ hasForeignTables: boolean; schema: string | null }> {
  const { rows } = await connection.query({ ...LOOK, values: [], rowMode: 'array', types: AS_TEXT })
  const [isReadOnly, server, client, hasForeignTables, found, problems] = rows[0] as readonly (string | null)[]
  if (isReadOnly === 'on') throw new Error('The server is read-only: a standby, or set so.')
  for (const [side, encoding] of Object.entries({ server, client })) {
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
  }
  const table = `${found}.plant_store_plants`
  if (problems !== '') throw new UnsuitableDatabaseError(`The table ${table} cannot keep plants: ${problems}.`)
  if (known !== null && found !== null && found !== known) {
    throw new UnsuitableDatabaseError(`The search_path leads to ${table} now, and led to the schema ${known} before.`)
  }
  return { hasForeignTables: hasForeignTables === 't', schema: found ?? known }
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
