import type { BigIntStats } from 'node:fs'
import { encodeFields } from '../../../src/plants/plant.ts'
import type { Simulation } from '../simulation.ts'
import { listPlantsAfter, type Call, type ReferenceModel } from '../reference-model.ts'

/** How SQLite names what went wrong (sqlite.org/rescode.html). */
const ERROR_CODES = { busy: 5, memory: 7, io: 1034, corrupt: 11, full: 13, bad: 19, misuse: 1 }

export function createSqliteError(code: keyof typeof ERROR_CODES): Error {
  return Object.assign(new Error(`SQLite: ${code}`), { errcode: ERROR_CODES[code] })
}

/** A file of plants, its log, and what other processes do to them. */
export class SimulatedFile {
  readonly truth: ReferenceModel
  readonly #world: Simulation
  hasTable = false
  isFull = false
  /** Until when another process has the file locked, for writes or for reads too. */
  writeLockedUntil = -Infinity
  readLockedUntil = -Infinity
  /** The files that are not at their place, and since when: 0 for the file, 1 for its log, 2 for its shared memory. */
  missingFile: number | undefined
  missingSince = Infinity
  #moveCount = 0
  /** What a commit that failed has left in the log: another process that opens the file takes it for committed. */
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

  /** Writes what a transaction has changed, over what an earlier one has left. */
  commit(changed: readonly Call[], hasWritten: boolean): void {
    if (hasWritten) this.#logRemainder = []
    this.#world.check(!hasWritten || this.missingFile === undefined, 'nothing is written to a file that was moved')
    for (const call of changed) this.truth.applyWrite(call)
  }

  setLogRemainder(changed: readonly Call[]): void {
    this.#logRemainder = changed
  }

  /** A process opens the file after the one before has ended. */
  recover(): void {
    for (const call of this.#logRemainder) this.truth.applyWrite(call)
    this.#logRemainder = []
  }

  /** The plants that a process reads: their ids, and the rest of their texts, as the store's query makes them. */
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

  /** What the file system says of the file, or of those beside it; undefined for a rollback journal. */
  stat(path: string): Partial<BigIntStats> | undefined {
    const fileIndex = ['', '-wal', '-shm'].findIndex((suffix) => path.endsWith(`.db${suffix}`))
    if (fileIndex === -1) return undefined
    const isFile = () => true
    return { ino: BigInt(fileIndex + (fileIndex === this.missingFile ? 10 : 0)), dev: 1n, size: 100n, isFile }
  }
}
