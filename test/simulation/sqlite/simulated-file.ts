import type { BigIntStats } from 'node:fs'
import { encodeFields } from '../../../src/plants/plant.ts'
import type { Simulation } from '../simulation.ts'
import { listPlantsAfter, type Call, type ReferenceModel } from '../reference-model.ts'

/** SQLite's result codes (sqlite.org/rescode.html). */
const ERROR_CODES = { busy: 5, memory: 7, io: 1034, corrupt: 11, full: 13, bad: 19, misuse: 1 }

export function createSqliteError(code: keyof typeof ERROR_CODES): Error {
  return Object.assign(new Error(`SQLite: ${code}`), { errcode: ERROR_CODES[code] })
}

/** A database file with its WAL, which other processes may lock, change and move. */
export class SimulatedFile {
  readonly truth: ReferenceModel
  readonly #world: Simulation
  hasTable = false
  isFull = false
  /** The time until which another process locks the file for writes. */
  writeLockedUntil = -Infinity
  /** The time until which another process locks the file for reads and writes. */
  readLockedUntil = -Infinity
  /** The file that was moved away: 0 for the database, 1 for its WAL, 2 for its shared memory. */
  missingFile: number | undefined
  missingSince = Infinity
  #moveCount = 0
  /** Changes that a failed commit left in the WAL. The next process that opens the file applies them. */
  #logRemainder: readonly Call[] = []

  constructor(world: Simulation, truth: ReferenceModel) {
    this.#world = world
    this.truth = truth
  }

  get isLocked(): boolean {
    return this.#world.time.now < Math.max(this.writeLockedUntil, this.readLockedUntil)
  }

  get isReadLocked(): boolean {
    return this.#world.time.now < this.readLockedUntil
  }

  /** Commits the changes of a transaction, and overwrites the remainder in the WAL. */
  commit(changed: readonly Call[], hasWritten: boolean): void {
    if (hasWritten) this.#logRemainder = []
    this.#world.check(!hasWritten || this.missingFile === undefined, 'nothing is written to a moved file')
    for (const call of changed) this.truth.applyWrite(call)
  }

  setLogRemainder(changed: readonly Call[]): void {
    this.#logRemainder = changed
  }

  /** Called when a process opens the file after the previous one has exited. */
  recover(): void {
    for (const call of this.#logRemainder) this.truth.applyWrite(call)
    this.#logRemainder = []
  }

  /** Returns the rows of the store's list query: the id and the encoded fields of each plant. */
  read(owner: string, after: bigint | undefined, limit: number): [bigint, string][] {
    const rows = listPlantsAfter(this.truth.plants, owner, after).slice(0, limit)
    return rows.map(([id, name]) => [id, encodeFields({ id, name })])
  }

  moveAway(fileIndex: number): void {
    this.missingFile = fileIndex
    this.missingSince = Math.min(this.missingSince, this.#world.time.now)
    this.#moveCount++
  }

  moveBack(): void {
    if (--this.#moveCount > 0) return
    this.missingFile = undefined
    this.missingSince = Infinity
  }

  /** Simulates `statSync()` for the database, its WAL and its shared memory. Other files are missing. */
  stat(path: string): Partial<BigIntStats> | undefined {
    const fileIndex = ['', '-wal', '-shm'].findIndex((suffix) => path.endsWith(`.db${suffix}`))
    if (fileIndex === -1) return undefined
    const isFile = () => true
    return { ino: BigInt(fileIndex + (fileIndex === this.missingFile ? 10 : 0)), dev: 1n, size: 100n, isFile }
  }
}
