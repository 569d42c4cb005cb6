import type { BigIntStats } from 'node:fs'
import { encodeRest } from '../../../src/plants/plant.ts'
import type { World } from '../simulation.ts'
import { pageOf, type Call, type Truth } from '../truth.ts'

/** How SQLite names what went wrong (sqlite.org/rescode.html). */
const CODES = { busy: 5, memory: 7, io: 1034, corrupt: 11, full: 13, bad: 19, misuse: 1 }

export function sqliteError(code: keyof typeof CODES): Error {
  return Object.assign(new Error(`SQLite: ${code}`), { errcode: CODES[code] })
}

/** A file of plants, its log, and what other processes do to them. */
export class PlantsFile {
  readonly truth: Truth
  readonly #world: World
  hasTable = false
  isFull = false
  /** Until when another process has the file locked, for writes or for reads too. */
  lockedUntil = -Infinity
  closedUntil = -Infinity
  /** The files that are not at their place, and since when: 0 for the file, 1 for its log, 2 for its shared memory. */
  away: number | undefined
  awaySince = Infinity
  #moves = 0
  /** What a commit that failed has left in the log: another process that opens the file takes it for committed. */
  #leftInLog: readonly Call[] = []

  constructor(world: World, truth: Truth) {
    this.#world = world
    this.truth = truth
  }

  get isLocked(): boolean {
    return this.#world.time.now < Math.max(this.lockedUntil, this.closedUntil)
  }

  get isClosed(): boolean {
    return this.#world.time.now < this.closedUntil
  }

  /** Writes what a transaction has changed, over what an earlier one has left. */
  commit(changed: readonly Call[], hasWritten: boolean): void {
    if (hasWritten) this.#leftInLog = []
    this.#world.expect(!hasWritten || this.away === undefined, 'nothing is written to a file that was moved')
    for (const call of changed) this.truth.write(call)
  }

  leaveInLog(changed: readonly Call[]): void {
    this.#leftInLog = changed
  }

  /** A process opens the file after the one before has ended. */
  recover(): void {
    for (const call of this.#leftInLog) this.truth.write(call)
    this.#leftInLog = []
  }

  /** The plants that a process reads: their ids, and the rest of their texts, as the store's query makes them. */
  read(owner: string, after: bigint | undefined, limit: number): [bigint, string][] {
    const rows = pageOf(this.truth.plants, owner, after).slice(0, limit)
    return rows.map(([id, name]) => [id, encodeRest({ id, name })])
  }

  moveAway(which: number): void {
    this.away = which
    this.awaySince = Math.min(this.awaySince, this.#world.time.now)
    this.#moves++
  }

  bringBack(): void {
    if (--this.#moves > 0) return
    this.away = undefined
    this.awaySince = Infinity
  }

  /** What the file system says of the file, or of those beside it; undefined for a rollback journal. */
  stat(path: string): Partial<BigIntStats> | undefined {
    const which = ['', '-wal', '-shm'].findIndex((end) => path.endsWith(`.db${end}`))
    if (which === -1) return undefined
    const isFile = () => true
    return { ino: BigInt(which + (which === this.away ? 10 : 0)), dev: 1n, size: 100n, isFile }
  }
}
