import { Clients, OWNERS } from '../clients.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { ReferenceModel } from '../reference-model.ts'
import { mutants } from './mutants.ts'
import { Network } from './network.ts'
import { Pool } from './pool.ts'
import { Program } from './program.ts'
import { scenarios, WRITE_FAILURES, type Event, type Scenario } from './scenario.ts'
import { Cluster } from './cluster.ts'
import type { Session } from './session.ts'

/** Two servers whose Postgres stores share a database, each with its own pool. */
export const postgres: SimulatedSystem<Scenario> = { name: 'postgres', scenarios, mutants, play }

async function play(scenario: Scenario, world: Simulation): Promise<void> {
  const { events, endsWithOutage, timeoutMs, isTableMissing, poolSize } = scenario
  const { time } = world
  const truth = new ReferenceModel(world)
  const clients = new Clients(world, truth)
  const network = new Network(world, scenario)
  const cluster = new Cluster(world, truth, scenario)
  const programs = [0, 1].map(() => new Program(new Pool(cluster, network, scenario)))
  const sessions = (): Session[] => programs.flatMap(({ pool }) => [...pool.sessions])

  function handleEvent(event: Event): void {
    if (!('store' in event)) return disrupt(event)
    const program = programs[event.store]!
    if ('plant' in event || 'owner' in event) clients.startEvent(program, event)
    else program[event.kind]()
  }

  /** Starts a temporary fault of the database server, the network or a pool. */
  function disrupt({ kind, ms, number }: Extract<Event, { number: number }>): void {
    cluster.recordFault(ms)
    switch (kind) {
      case 'silence':
        network.startOutage()
        time.schedule(ms, () => network.endOutage())
        break
      case 'full':
        cluster.rejectsCreates = true
        cluster.writeFailureCode = WRITE_FAILURES[number]!
        cluster.rejectsCreatesSince = time.now
        time.schedule(ms, () => (cluster.rejectsCreates = false))
        break
      case 'readOnly':
        cluster.isReadOnly = true
        time.schedule(ms, () => (cluster.isReadOnly = false))
        break
      case 'unfit':
        cluster.defect = number
        time.schedule(ms, () => (cluster.defect = undefined))
        break
      case 'searchPath':
        cluster.hasOtherSearchPath = true
        time.schedule(ms, () => (cluster.hasOtherSearchPath = false))
        break
      case 'noStandby':
        cluster.hasStandby = false
        time.schedule(ms, () => {
          // In some scenarios, an administrator cancels the wait for the standby.
          if (number === 3) for (const session of sessions()) session.cancel(Infinity, true)
          cluster.restoreStandby()
          for (const session of sessions()) session.onStandbyRestored()
        })
        break
      case 'failOver': {
        const oldSessions = sessions()
        cluster.failOver()
        // The old leader keeps its sessions. It ends some of them now, and the others later.
        for (const [index, session] of oldSessions.entries())
          time.schedule(index % 2 === number % 2 ? 1 : ms, () => session.terminate())
        break
      }
      case 'restart':
        for (const session of sessions()) session.terminate()
        break
      case 'cut':
        for (const session of sessions()) network.deliver(1, () => session.breakConnection())
        break
      case 'takePool':
        // The host uses all connections of the pool for something else.
        for (let count = 0; count < poolSize; count++) {
          programs[number % 2]!.pool.connect().then(
            (session) => time.schedule(ms, () => session.release(session.isBroken ? new Error('broken') : undefined)),
            () => undefined,
          )
        }
    }
  }

  /** While a server is unresponsive, every abandoned connection attempt would leave a session behind. */
  async function checkNoConnectionAttempts(): Promise<void> {
    async function createThreePlants(): Promise<void> {
      for (let count = 0; count < 3; count++) {
        for (const program of programs) clients.createUniquePlant(program)
        await world.advance(2 * timeoutMs)
      }
    }
    await createThreePlants()
    // By then, the host has released its connections.
    await world.advance(60_000)
    const connectCounts = programs.map(({ pool }) => pool.connectCount)
    await createThreePlants()
    for (const [index, { pool }] of programs.entries()) {
      const hasNotConnected = pool.connectCount === connectCounts[index] || pool.isClosed || !pool.hasProvidedUsable
      world.check(hasNotConnected, 'an unresponsive server gets no new connections:', index)
    }
  }

  /** Checks that every store works after all faults, and contains exactly the acknowledged plants. */
  async function checkRecovery(): Promise<void> {
    for (const session of sessions()) session.terminate()
    await world.advance(10)
    for (const program of programs) program.migrate()
    await world.advance(programs[0]!.maxCallMs)
    for (const program of programs) {
      const created = clients.createUniquePlant(program)
      program.ping()
      const lists = OWNERS.map((owner) => clients.list(program, owner, 100))
      await world.advance(program.maxCallMs)
      world.check(created.outcome === 'true', 'a store creates plants again after all faults:', created.outcome)
      for (const { outcome } of lists)
        world.check(outcome === 'page', 'a store lists plants again after all faults:', outcome)
      program.store.close()
    }
  }

  if (isTableMissing) for (const program of programs) program.migrate()
  await world.playEvents(events, handleEvent)
  if (endsWithOutage) {
    cluster.recordFault(Infinity)
    network.startOutage()
    await checkNoConnectionAttempts()
  }
  await world.advance(20_000)
  if (endsWithOutage) for (const program of programs) program.close()
  await world.advance(20_000 + 10 * timeoutMs)
  world.check(!sessions().some(({ isCheckedOut }) => isCheckedOut), 'every connection is released eventually')
  if (!endsWithOutage) await checkRecovery()
  world.check(time.pendingTimerCount === 0, 'no timer is left at the end')
}
