import fs from 'node:fs'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { Clients, OWNERS, type Target } from '../clients.ts'
import type { Part, World } from '../simulation.ts'
import { keyOf, Truth, type Call } from '../truth.ts'
import { Hook } from '../virtual-time.ts'
import { faults } from './faults.ts'
import { PlantsFile } from './file.ts'
import { Handle } from './handle.ts'
import { scenarios, type Event, type Fate, type Scenario } from './scenario.ts'

const statSync = new Hook<(path: string) => unknown>(fs, 'statSync')

type Store = ReturnType<typeof sqliteStore>

/** A program that keeps plants in a file of SQLite, and a second one that writes there, too. */
export const sqlite: Part<Scenario> = {
  name: 'sqlite',
  scenarios,
  faults,
  play: (scenario, world) => new SqliteSimulation(scenario, world).play(),
}

/** How long a call may take beyond the time that it waits for locks and that the disk takes. */
const SLACK_MS = 50

class SqliteSimulation implements Target {
  readonly #file: PlantsFile
  readonly #scenario: Scenario
  readonly #world: World
  readonly #clients: Clients
  readonly #truth: Truth
  readonly #nextFate: () => Fate | undefined
  #handle!: Handle
  /** There is none while the program is not running. */
  #store: Store | undefined
  /** How long the disk had taken for all operations when each call began. */
  readonly #slowBefore = new Map<Call, number>()
  #slowMs = 0
  #troubledUntil = -Infinity

  constructor(scenario: Scenario, world: World) {
    this.#scenario = scenario
    this.#world = world
    this.#truth = new Truth(world)
    this.#clients = new Clients(world, this.#truth)
    this.#file = new PlantsFile(world, this.#truth)
    world.atEnd(statSync.take((path) => this.#file.stat(path)))
    const next = world.inTurn(scenario.fates)
    this.#nextFate = () => {
      const fate = next()
      if (fate !== undefined) this.#trouble(fate.ms)
      if (fate?.kind === 'slow') this.#slowMs += fate.ms
      return fate
    }
  }

  get store(): Store {
    return this.#store!
  }

  async play(): Promise<void> {
    this.#start()
    await this.#world.begin(this.#scenario.events, (event) => this.#begin(event))
    await this.#world.pass(20_000)
    this.#world.expect(this.#clients.pending.size === 0, 'each call ends')
    this.#world.expect(this.#store !== undefined, 'the program starts again')
    // After all troubles it serves, and what is there is what was acknowledged.
    this.#ping()
    const created = this.#clients.createNew(this)
    await this.#world.pass(1000)
    this.#world.expect(created.outcome === 'true', 'the store serves again after all troubles:', created.outcome)
    for (const owner of OWNERS) this.#clients.list(this, owner, 100)
    void this.store.close()
    await this.#world.pass(1000)
    this.#world.expect(this.#world.time.left === 0, 'no timer is left in the end')
  }

  began(call: Call): void {
    this.#slowBefore.set(call, this.#slowMs)
  }

  ended(call: Call, error?: unknown): void {
    const { outcome, startedAt, number, isUnsure } = call
    const tookMs = this.#world.time.now - startedAt
    const isPatient = tookMs >= this.#scenario.busyTimeoutMs || !String(error).endsWith('busy')
    this.#world.expect(isPatient, 'each call waits for a lock as long as it may:', number)
    const longestMs = this.#scenario.busyTimeoutMs + this.#slowMs - this.#slowBefore.get(call)! + SLACK_MS
    this.#world.expect(tookMs <= longestMs, 'each call ends in its time:', number)
    const isKnown = outcome === 'unknown' && !isUnsure
    this.#world.expect(!isKnown, 'what was surely not done is not unknown:', number)
  }

  mayFail(error: unknown): boolean {
    return String(error).endsWith('corrupt')
  }

  /** The program starts, and tries again while it cannot. */
  #start(): void {
    const { busyTimeoutMs, maxBatch } = this.#scenario
    const handle = new Handle(this.#world, this.#file, this.#nextFate, maxBatch, () => this.#end(handle))
    this.#handle = handle
    this.#file.recover()
    try {
      if (this.#file.away !== undefined) throw new Error('there is no file of plants')
      this.#store = sqliteStore(handle, { busyTimeoutMs, maxBatch })
    } catch (error) {
      this.#world.tell('the start fails:', error)
      handle.isDead = true
      this.#world.time.after(100, () => this.#start())
    }
  }

  /** The program ends, in the middle of whatever it does. Its clients do not know what became of their calls. */
  #end(handle: Handle): void {
    handle.isDead = true
    if (this.#store === undefined) return
    this.#store = undefined
    for (const call of this.#clients.pending) {
      call.isUnsure = true
      this.#clients.settle(this, call, call.kind === 'list' ? 'unavailable' : 'unknown')
    }
    this.#world.time.after(10, () => this.#start())
  }

  #trouble(ms: number): void {
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#world.time.now + ms)
  }

  #begin(event: Event): void {
    if ('ms' in event) return this.#befall(event)
    if (this.#store === undefined) return
    if (event.kind === 'ping') this.#ping()
    else this.#clients.begin(this, event)
  }

  #befall({ kind, ms, number }: Extract<Event, { ms: number }>): void {
    const { time } = this.#world
    const file = this.#file
    this.#trouble(ms)
    if (kind === 'lock') file.lockedUntil = time.now + ms
    else if (kind === 'lockAll') file.closedUntil = time.now + ms
    else if (kind === 'end') this.#end(this.#handle)
    else if (kind === 'full') {
      file.isFull = true
      time.after(ms, () => (file.isFull = false))
    } else if (kind === 'away') {
      file.moveAway(number % 3)
      time.after(ms, () => file.bringBack())
    } else if (!file.isLocked && file.away === undefined) {
      const key = keyOf(OWNERS[number % 2]!, BigInt(number))
      this.#truth.set(key, this.#truth.plants.has(key) ? undefined : 'another')
    }
  }

  #ping(): void {
    const { time } = this.#world
    const handle = this.#handle
    const { commits } = handle
    const startedAt = time.now
    const wasWell = this.#troubledUntil < startedAt - 1100
    Promise.resolve(this.store.ping()).then(
      () => {
        this.#world.tell('ping: ready')
        this.#world.expect(handle.commits > commits, 'a store is ready only if it can commit')
        const hasWritten = handle.wroteAt >= handle.failedAt
        this.#world.expect(hasWritten, 'a store is ready after a failure only if it has written since')
      },
      (error: unknown) => {
        this.#world.tell('ping: not ready', error)
        const isWell = wasWell && this.#troubledUntil < startedAt
        this.#world.expect(!isWell, 'a store is ready while all is well')
      },
    )
  }
}
