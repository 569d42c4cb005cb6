import type { SqliteHandle, SqliteStatement, SqliteValue } from '../../../src/stores/sqlite/handle.ts'
import { BAD } from '../clients.ts'
import type { World } from '../simulation.ts'
import { keyOf, type Call } from '../truth.ts'
import { sqliteError, type PlantsFile } from './file.ts'
import type { Fate, Scenario } from './scenario.ts'

const PATH = '/nowhere/plants.db'

interface Transaction {
  /** The plants as they will be. */
  readonly plants: Set<string>
  readonly changed: Call[]
  hasWritten: boolean
  /** The calls whose writes were run, in their order. */
  readonly run: Call[]
}

/** A database that a process has open, as far as the store uses it. */
export class Handle implements SqliteHandle {
  readonly #world: World
  readonly #file: PlantsFile
  readonly #nextFate: () => Fate | undefined
  readonly #maxBatch: number
  readonly #end: () => void
  readonly #driver: Scenario['driver']
  #transaction: Transaction | undefined
  /** Whether a commit has failed, and none has succeeded since. */
  #isShaken = false
  /** The call whose write was committed last. */
  #lastDone = 0
  isDead = false
  /** How often it has committed, and when it last wrote, and failed to. */
  commits = 0
  wroteAt = -Infinity
  failedAt = -Infinity
  /** The time that operations have taken. */
  slowMs = 0

  constructor(
    world: World,
    file: PlantsFile,
    nextFate: () => Fate | undefined,
    { maxBatch, driver }: Scenario,
    end: () => void,
  ) {
    this.#world = world
    this.#file = file
    this.#nextFate = nextFate
    this.#maxBatch = maxBatch
    this.#driver = driver
    this.#end = end
  }

  close(): void {
    this.#world.expect(false, 'no database is closed that others have opened')
  }

  exec(sql: string): void {
    if (sql.includes('CREATE TABLE')) this.#file.hasTable = true
  }

  prepare(sql: string): SqliteStatement {
    const run = this.#statement(sql)
    const query = sql.includes('SELECT id')
    let hasFailed = false
    return {
      run: (...values: SqliteValue[]) => ({ changes: run(...values) }),
      all: (...values: SqliteValue[]) => (query ? this.#read(values) : this.#ask(sql)),
      iterate: (...values: SqliteValue[]) => {
        // In node:sqlite, the statement would throw the same error once more.
        this.#world.expect(!hasFailed, 'a statement whose iteration has failed is not used again')
        try {
          return query ? this.#read(values) : this.#ask(sql)
        } catch (error) {
          if (this.#driver === 'deno') return []
          hasFailed = true
          throw error
        }
      },
    }
  }

  #ask(sql: string): unknown[] {
    if (sql.includes('json(')) throw sqliteError('misuse')
    if (sql === 'SELECT 9007199254740993') return [[9007199254740993n]]
    if (sql === 'PRAGMA database_list') return [[0, 'main', PATH]]
    if (sql === 'PRAGMA main.journal_mode') return [['wal']]
    if (sql === 'PRAGMA main.application_id') return [[this.#file.hasTable ? 0x504c4e54 : 0]]
    if (sql.startsWith('PRAGMA')) return [[this.#file.hasTable ? 1 : 0]]
    return [[null]]
  }

  #statement(sql: string): (...values: SqliteValue[]) => number {
    switch (sql.trim().split(/ (?:\(|WHERE)/)[0]) {
      case 'BEGIN IMMEDIATE':
        return () => this.#begin()
      case 'COMMIT':
        return () => this.#commit()
      case 'ROLLBACK':
        return () => this.#rollback()
      case 'DELETE FROM main.plants':
        return sql.includes('?') ? (owner, id) => this.#write(owner, id, undefined) : () => this.#writeNothing(true)
      default:
        if (sql.includes('?')) return (owner, id, name) => this.#write(owner, id, name as string)
        return () => this.#writeNothing(sql.includes('VALUES'))
    }
  }

  /** Lets something befall an operation. */
  #befall(operation: string, mayBeBusy: boolean): Fate | undefined {
    if (this.isDead) throw sqliteError('misuse')
    const fate = this.#nextFate()
    if (fate === undefined) return undefined
    this.#world.tell(operation, fate)
    if (fate.kind !== 'slow') return fate.kind === 'busy' && !mayBeBusy ? undefined : fate
    // The event loop waits for it, too.
    this.#world.time.now += fate.ms
    this.slowMs += fate.ms
    return undefined
  }

  #fail(fate: Fate): never {
    if (fate.kind === 'end') this.#end()
    else if (fate.kind !== 'busy') this.failedAt = this.#world.time.now
    if (fate.rollsBack || fate.kind === 'end') this.#transaction = undefined
    throw sqliteError(fate.kind as 'io')
  }

  #begin(): number {
    const fate = this.#befall('BEGIN', true)
    if (this.#transaction !== undefined) throw sqliteError('misuse')
    if (fate !== undefined) this.#fail({ ...fate, rollsBack: false })
    if (this.#file.isLocked) throw sqliteError('busy')
    this.#transaction = { plants: new Set(this.#file.truth.plants.keys()), changed: [], hasWritten: false, run: [] }
    return 0
  }

  #commit(): number {
    const fate = this.#befall('COMMIT', true)
    const transaction = this.#transaction
    if (transaction === undefined) throw sqliteError('misuse')
    const { changed, hasWritten, run } = transaction
    const isBold = this.#isShaken && run.length > 0
    this.#world.expect(!isBold, 'no plant is written after a commit has failed, before one without a plant has not')
    if (fate !== undefined) {
      const { kind, leaves } = fate
      if (kind !== 'busy' && kind !== 'corrupt') {
        if (leaves === 'all') this.#file.commit(changed, hasWritten)
        if (leaves === 'log') this.#file.leaveInLog(changed)
        if (leaves === 'all') this.#transaction = undefined
        for (const call of run) call.isUnsure = true
        this.#isShaken = true
      }
      this.#fail(fate)
    }
    this.#transaction = undefined
    this.#file.commit(changed, hasWritten)
    this.commits++
    this.#lastDone = run.at(-1)?.number ?? this.#lastDone
    if (hasWritten) this.#isShaken = false
    if (hasWritten) this.wroteAt = this.#world.time.now
    return 0
  }

  #rollback(): number {
    const fate = this.#befall('ROLLBACK', false)
    if (this.#transaction === undefined) throw sqliteError('misuse')
    this.#transaction = undefined
    if (fate?.kind === 'end') this.#end()
    if (fate !== undefined) throw sqliteError(fate.kind as 'io')
    return 0
  }

  /** Creates a plant, or deletes it if it gets no name. */
  #write(owner: SqliteValue | undefined, id: SqliteValue | undefined, name: string | undefined): number {
    const transaction = this.#take('a write')
    const key = keyOf(owner as string, id as bigint)
    const call = [...this.#file.truth.writes].find((write) => write.key === key && write.name === name)
    this.#world.expect(call !== undefined, 'nothing is written for a call that has ended:', key)
    if (call === undefined) return 0
    const before = transaction.run.at(-1)?.number ?? this.#lastDone
    this.#world.expect(call.number > before, 'writes are done in their order:', call.number)
    transaction.run.push(call)
    this.#world.expect(transaction.run.length <= this.#maxBatch, 'no transaction has too many writes')
    if (name?.startsWith(BAD) === true) throw sqliteError('bad')
    if (transaction.plants.has(key) === (name !== undefined)) return 0
    if (name !== undefined) this.#needRoom()
    if (name === undefined) transaction.plants.delete(key)
    else transaction.plants.add(key)
    transaction.changed.push(call)
    transaction.hasWritten = true
    return 1
  }

  /** Writes what is no plant of anybody. */
  #writeNothing(needsRoom: boolean): number {
    const transaction = this.#take('a look')
    if (needsRoom) this.#needRoom()
    transaction.hasWritten ||= needsRoom
    return 0
  }

  #needRoom(): void {
    if (!this.#file.isFull) return
    this.failedAt = this.#world.time.now
    throw sqliteError('full')
  }

  #take(operation: string): Transaction {
    const fate = this.#befall(operation, false)
    if (this.#transaction === undefined) throw sqliteError('misuse')
    if (fate !== undefined) this.#fail(fate)
    return this.#transaction
  }

  #read(values: SqliteValue[]): unknown[] {
    const isLate = this.#world.time.now - this.#file.awaySince > 100
    this.#world.expect(!isLate, 'nothing is read of a file that was moved')
    const fate = this.#befall('SELECT', true)
    if (fate?.kind === 'end') this.#end()
    if (fate !== undefined) throw sqliteError(fate.kind as 'io')
    if (this.#file.isClosed) throw sqliteError('busy')
    const [owner, after] = values as [string, bigint]
    return this.#file.read(owner, values.length === 3 ? after : undefined, Number(values.at(-1)))
  }
}
