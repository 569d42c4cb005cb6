import type { SqliteHandle, SqliteStatement, SqliteValue } from '../../../src/stores/sqlite/handle.ts'
import { INVALID_PREFIX } from '../clients.ts'
import type { Simulation } from '../simulation.ts'
import { getPlantKey, type Call } from '../reference-model.ts'
import { createSqliteError, type SimulatedFile } from './simulated-file.ts'
import type { Fault, Scenario } from './scenario.ts'

const PATH = '/nowhere/plants.db'

interface Transaction {
  /** The plants after the transaction. */
  readonly plants: Set<string>
  readonly changed: Call[]
  hasWritten: boolean
  /** The calls whose writes were executed, in order. */
  readonly executedCalls: Call[]
}

/** A process's connection to the database. Supports what the store uses. */
export class Handle implements SqliteHandle {
  readonly #world: Simulation
  readonly #file: SimulatedFile
  readonly #nextFault: () => Fault | undefined
  readonly #maxBatch: number
  readonly #crash: () => void
  readonly #driver: Scenario['driver']
  #transaction: Transaction | undefined
  /** Whether a commit has failed, and none has succeeded since. */
  #hasFailedCommit = false
  /** The number of the call whose write was committed last. */
  #lastCommitted = 0
  isCrashed = false
  commitCount = 0
  /** When a write was last committed. */
  lastWriteAt = -Infinity
  /** When an operation last failed. */
  lastFailureAt = -Infinity
  /** Total delay of slow operations. */
  totalSlowMs = 0

  constructor(
    world: Simulation,
    file: SimulatedFile,
    nextFault: () => Fault | undefined,
    { maxBatch, driver }: Scenario,
    crash: () => void,
  ) {
    this.#world = world
    this.#file = file
    this.#nextFault = nextFault
    this.#maxBatch = maxBatch
    this.#driver = driver
    this.#crash = crash
  }

  close(): void {
    this.#world.check(false, 'the store does not close a database that it has not opened')
  }

  exec(sql: string): void {
    if (sql.includes('CREATE TABLE')) this.#file.hasTable = true
  }

  prepare(sql: string): SqliteStatement {
    const execute = this.#compile(sql)
    const isListQuery = sql.includes('SELECT id')
    let hasFailed = false
    return {
      run: (...values: SqliteValue[]) => ({ changes: execute(...values) }),
      all: (...values: SqliteValue[]) => (isListQuery ? this.#read(values) : this.#query(sql)),
      iterate: (...values: SqliteValue[]) => {
        // In node:sqlite, the statement would throw the same error again.
        this.#world.check(!hasFailed, 'a statement whose iteration has failed is not reused')
        try {
          return isListQuery ? this.#read(values) : this.#query(sql)
        } catch (error) {
          if (this.#driver === 'deno') return []
          hasFailed = true
          throw error
        }
      },
    }
  }

  #query(sql: string): unknown[] {
    if (sql.includes('json(')) throw createSqliteError('misuse')
    if (sql === 'SELECT 9007199254740993') return [[9007199254740993n]]
    if (sql === 'PRAGMA database_list') return [[0, 'main', PATH]]
    if (sql === 'PRAGMA main.journal_mode') return [['wal']]
    if (sql === 'PRAGMA main.application_id') return [[this.#file.hasTable ? 0x504c4e54 : 0]]
    if (sql.startsWith('PRAGMA')) return [[this.#file.hasTable ? 1 : 0]]
    return [[null]]
  }

  #compile(sql: string): (...values: SqliteValue[]) => number {
    switch (sql.trim().split(/ (?:\(|WHERE)/)[0]) {
      case 'BEGIN IMMEDIATE':
        return () => this.#begin()
      case 'COMMIT':
        return () => this.#commit()
      case 'ROLLBACK':
        return () => this.#rollback()
      case 'DELETE FROM main.plants':
        return sql.includes('?') ? (owner, id) => this.#write(owner, id, undefined) : () => this.#probe(true)
      default:
        if (sql.includes('?')) return (owner, id, name) => this.#write(owner, id, name as string)
        return () => this.#probe(sql.includes('VALUES'))
    }
  }

  /** Injects the next fault into an operation. */
  #injectFault(operation: string, mayBeBusy: boolean): Fault | undefined {
    if (this.isCrashed) throw createSqliteError('misuse')
    const fault = this.#nextFault()
    if (fault === undefined) return undefined
    this.#world.log(operation, fault)
    if (fault.kind !== 'slow') return fault.kind === 'busy' && !mayBeBusy ? undefined : fault
    // A slow operation blocks the event loop.
    this.#world.time.now += fault.ms
    this.totalSlowMs += fault.ms
    return undefined
  }

  #throwFault(fault: Fault): never {
    if (fault.kind === 'end') this.#crash()
    else if (fault.kind !== 'busy') this.lastFailureAt = this.#world.time.now
    if (fault.rollsBack || fault.kind === 'end') this.#transaction = undefined
    throw createSqliteError(fault.kind as 'io')
  }

  #begin(): number {
    const fault = this.#injectFault('BEGIN', true)
    if (this.#transaction !== undefined) throw createSqliteError('misuse')
    if (fault !== undefined) this.#throwFault({ ...fault, rollsBack: false })
    if (this.#file.isLocked) throw createSqliteError('busy')
    this.#transaction = {
      plants: new Set(this.#file.truth.plants.keys()),
      changed: [],
      hasWritten: false,
      executedCalls: [],
    }
    return 0
  }

  #commit(): number {
    const fault = this.#injectFault('COMMIT', true)
    const transaction = this.#transaction
    if (transaction === undefined) throw createSqliteError('misuse')
    const { changed, hasWritten, executedCalls } = transaction
    const isPrematureWrite = this.#hasFailedCommit && executedCalls.length > 0
    this.#world.check(!isPrematureWrite, 'after a failed commit, no plant is written before a probe has been committed')
    if (fault !== undefined) {
      const { kind, leftover } = fault
      if (kind !== 'busy' && kind !== 'corrupt') {
        if (leftover === 'all') this.#file.commit(changed, hasWritten)
        if (leftover === 'log') this.#file.setLogRemainder(changed)
        if (leftover === 'all') this.#transaction = undefined
        for (const call of executedCalls) call.isAmbiguous = true
        this.#hasFailedCommit = true
      }
      this.#throwFault(fault)
    }
    this.#transaction = undefined
    this.#file.commit(changed, hasWritten)
    this.commitCount++
    this.#lastCommitted = executedCalls.at(-1)?.number ?? this.#lastCommitted
    if (hasWritten) this.#hasFailedCommit = false
    if (hasWritten) this.lastWriteAt = this.#world.time.now
    return 0
  }

  #rollback(): number {
    const fault = this.#injectFault('ROLLBACK', false)
    if (this.#transaction === undefined) throw createSqliteError('misuse')
    this.#transaction = undefined
    if (fault?.kind === 'end') this.#crash()
    if (fault !== undefined) throw createSqliteError(fault.kind as 'io')
    return 0
  }

  /** Creates a plant, or deletes it if `name` is undefined. */
  #write(owner: SqliteValue | undefined, id: SqliteValue | undefined, name: string | undefined): number {
    const transaction = this.#requireTransaction('write')
    const key = getPlantKey(owner as string, id as bigint)
    const call = [...this.#file.truth.pendingWrites].find((write) => write.key === key && write.name === name)
    this.#world.check(call !== undefined, 'nothing is written for a settled call:', key)
    if (call === undefined) return 0
    const previousNumber = transaction.executedCalls.at(-1)?.number ?? this.#lastCommitted
    this.#world.check(call.number > previousNumber, 'writes are executed in order:', call.number)
    transaction.executedCalls.push(call)
    this.#world.check(transaction.executedCalls.length <= this.#maxBatch, 'a transaction has at most maxBatch writes')
    if (name?.startsWith(INVALID_PREFIX) === true) throw createSqliteError('bad')
    if (transaction.plants.has(key) === (name !== undefined)) return 0
    if (name !== undefined) this.#allocate()
    if (name === undefined) transaction.plants.delete(key)
    else transaction.plants.add(key)
    transaction.changed.push(call)
    transaction.hasWritten = true
    return 1
  }

  /** Executes a probe, which doesn't write a plant. */
  #probe(allocates: boolean): number {
    const transaction = this.#requireTransaction('probe')
    if (allocates) this.#allocate()
    transaction.hasWritten ||= allocates
    return 0
  }

  #allocate(): void {
    if (!this.#file.isFull) return
    this.lastFailureAt = this.#world.time.now
    throw createSqliteError('full')
  }

  #requireTransaction(operation: string): Transaction {
    const fault = this.#injectFault(operation, false)
    if (this.#transaction === undefined) throw createSqliteError('misuse')
    if (fault !== undefined) this.#throwFault(fault)
    return this.#transaction
  }

  #read(values: SqliteValue[]): unknown[] {
    const isLate = this.#world.time.now - this.#file.missingSince > 100
    this.#world.check(!isLate, 'nothing is read from a moved file')
    const fault = this.#injectFault('SELECT', true)
    if (fault?.kind === 'end') this.#crash()
    if (fault !== undefined) throw createSqliteError(fault.kind as 'io')
    if (this.#file.isReadLocked) throw createSqliteError('busy')
    const [owner, after] = values as [string, bigint]
    return this.#file.read(owner, values.length === 3 ? after : undefined, Number(values.at(-1)))
  }
}
