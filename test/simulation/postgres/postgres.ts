import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { figuresOf } from '../../../src/stores/figures.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { Clients, OWNERS, type Target } from '../clients.ts'
import type { Part, World } from '../simulation.ts'
import { Truth, type Call } from '../truth.ts'
import { faults } from './faults.ts'
import { Network } from './network.ts'
import { Pool } from './pool.ts'
import { Probes } from './probes.ts'
import { scenarios, type Event, type Scenario } from './scenario.ts'
import { Cluster } from './server.ts'
import { befallServer } from './trouble.ts'

/** Two programs that keep plants in Postgres, each with a pool of its own. */
export const postgres: Part<Scenario> = {
  name: 'postgres',
  scenarios,
  faults,
  play: (scenario, world) => new PostgresSimulation(scenario, world).play(),
}

/** A store, its pool and those who probe it. */
class Program implements Target {
  readonly pool: Pool
  readonly store: PostgresStore
  readonly probes: Probes
  readonly #longestMs: number

  constructor(pool: Pool, longestMs: number) {
    this.pool = pool
    this.#longestMs = longestMs
    const { timeoutMs, maxBatch, maxInFlight, preparedStatements } = pool.scenario
    const onWarning = (): void => pool.thrift.warned()
    this.store = postgresStore(pool, { timeoutMs, maxBatch, maxInFlight, preparedStatements, onWarning })
    this.probes = new Probes(pool, this.store)
  }

  close(): void {
    this.pool.isClosed = true
    void this.store[Symbol.asyncDispose]()
  }

  began(call: Call): void {
    const { world, calls } = this.pool
    calls.add(call)
    world.time.after(this.#longestMs, () => world.expect(!calls.has(call), 'each call ends in its time:', call.number))
  }

  mayFail(error: unknown): boolean {
    return (error as { code?: string }).code === '42P01'
  }

  ended(call: Call, error?: unknown): void {
    this.pool.calls.delete(call)
    this.pool.thrift.ended(call, error)
    if (call.outcome === 'unknown') this.pool.seeThatUnknown(call)
  }
}

class PostgresSimulation {
  readonly #network: Network
  readonly #cluster: Cluster
  readonly #scenario: Scenario
  readonly #world: World
  readonly #clients: Clients
  readonly #programs: readonly Program[]
  /** How long any call may take: it may wait for others, then for its statements, and then for their cancellation. */
  readonly #longestMs: number

  constructor(scenario: Scenario, world: World) {
    this.#scenario = scenario
    this.#world = world
    this.#longestMs = 2.5 * scenario.timeoutMs + 10
    const truth = new Truth(world)
    this.#clients = new Clients(world, truth)
    this.#network = new Network(world, scenario)
    this.#cluster = new Cluster(world, truth, scenario)
    this.#programs = [0, 1].map(() => new Program(new Pool(this.#cluster, this.#network, scenario), this.#longestMs))
    for (const { store } of this.#programs) {
      figuresOf(store).onBatch = () => this.#cluster.groupedAt.push(world.time.now)
    }
  }

  async play(): Promise<void> {
    const { events, endsInSilence, timeoutMs, lacksTable } = this.#scenario
    if (lacksTable) for (const { store } of this.#programs) this.#migrate(store)
    await this.#world.begin(events, (event) => this.#begin(event))
    if (endsInSilence) {
      this.#cluster.trouble(Infinity)
      this.#network.silence()
      await this.#seeThatNothingIsAsked()
    }
    await this.#world.pass(20_000)
    if (endsInSilence) for (const program of this.#programs) program.close()
    await this.#world.pass(20_000 + 10 * timeoutMs)
    const lent = this.#programs.flatMap(({ pool }) => [...pool.sessions]).filter(({ isLent }) => isLent)
    this.#world.expect(lent.length === 0, 'each connection comes back in the end')
    if (!endsInSilence) await this.#seeThatAllIsWell()
    this.#world.expect(this.#world.time.left === 0, 'no timer is left in the end')
  }

  /** While a server says nothing, each connection that is given up would leave a session behind. */
  async #seeThatNothingIsAsked(): Promise<void> {
    const createThree = async (): Promise<void> => {
      for (let count = 0; count < 3; count++) {
        for (const program of this.#programs) this.#clients.createNew(program)
        await this.#world.pass(2 * this.#scenario.timeoutMs)
      }
    }
    await createThree()
    // Until the host has given back what it took.
    await this.#world.pass(10_000)
    const asked = this.#programs.map(({ pool }) => pool.asked)
    await createThree()
    for (const [at, { pool }] of this.#programs.entries()) {
      const isSilent = pool.asked === asked[at] || pool.isClosed || !pool.hasServed
      this.#world.expect(isSilent, 'a silent server is asked for no more connections:', at)
    }
  }

  /** After all troubles, every store serves, and what is there is what was acknowledged. */
  async #seeThatAllIsWell(): Promise<void> {
    for (const { pool } of this.#programs) for (const session of pool.sessions) session.terminate()
    await this.#world.pass(10)
    for (const { store } of this.#programs) this.#migrate(store)
    await this.#world.pass(this.#longestMs)
    for (const program of this.#programs) {
      const created = this.#clients.createNew(program)
      program.probes.ping()
      const lists = OWNERS.map((owner) => this.#clients.list(program, owner, 100))
      await this.#world.pass(this.#longestMs)
      this.#world.expect(created.outcome === 'true', 'a store serves again after all troubles:', created.outcome)
      for (const { outcome } of lists) this.#world.expect(outcome === 'page', 'a store lists again:', outcome)
      program.store.close()
    }
  }

  #begin(event: Event): void {
    if (!('store' in event)) return befallServer(event, this.#world, this.#cluster, this.#network, this.#programs)
    const program = this.#programs[event.store]!
    if ('plant' in event || 'owner' in event) this.#clients.begin(program, event)
    else if (event.kind === 'close') program.close()
    else if (event.kind === 'ping') program.probes.ping()
    else this.#migrate(program.store)
  }

  #migrate(store: PostgresStore): void {
    store.migrate().then(
      () => this.#world.expect(this.#cluster.hasTable, 'there is a table after migrate'),
      (error: unknown) => {
        this.#world.tell('migrate:', error)
        this.#world.expect(error instanceof StoreUnavailableError, 'migrate makes its table, or may later:', error)
      },
    )
  }
}
