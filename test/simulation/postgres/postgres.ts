import { Clients, OWNERS } from '../clients.ts'
import type { Part, World } from '../simulation.ts'
import { Truth } from '../truth.ts'
import { faults } from './faults.ts'
import { Network } from './network.ts'
import { Pool } from './pool.ts'
import { Program } from './program.ts'
import { scenarios, WRITE_FAILURES, type Event, type Scenario } from './scenario.ts'
import { Cluster } from './server.ts'
import type { Session } from './session.ts'

/** Two programs that keep plants in Postgres, each with a pool of its own. */
export const postgres: Part<Scenario> = { name: 'postgres', scenarios, faults, play }

async function play(scenario: Scenario, world: World): Promise<void> {
  const { events, endsInSilence, timeoutMs, lacksTable, poolSize } = scenario
  const { time } = world
  const truth = new Truth(world)
  const clients = new Clients(world, truth)
  const network = new Network(world, scenario)
  const cluster = new Cluster(world, truth, scenario)
  const programs = [0, 1].map(() => new Program(new Pool(cluster, network, scenario)))
  const sessions = (): Session[] => programs.flatMap(({ pool }) => [...pool.sessions])

  function begin(event: Event): void {
    if (!('store' in event)) return befall(event)
    const program = programs[event.store]!
    if ('plant' in event || 'owner' in event) clients.begin(program, event)
    else program[event.kind]()
  }

  /** What befalls the server, the network or the pools, and passes. */
  function befall({ kind, ms, number }: Extract<Event, { number: number }>): void {
    cluster.trouble(ms)
    switch (kind) {
      case 'silence':
        network.silence()
        time.after(ms, () => network.speak())
        break
      case 'full':
        cluster.isFull = true
        cluster.writeFailure = WRITE_FAILURES[number]!
        cluster.fullSince = time.now
        time.after(ms, () => (cluster.isFull = false))
        break
      case 'readOnly':
        cluster.isReadOnly = true
        time.after(ms, () => (cluster.isReadOnly = false))
        break
      case 'unfit':
        cluster.isUnfit = number
        time.after(ms, () => (cluster.isUnfit = undefined))
        break
      case 'searchPath':
        cluster.isDiverted = true
        time.after(ms, () => (cluster.isDiverted = false))
        break
      case 'noStandby':
        cluster.hasStandby = false
        time.after(ms, () => {
          // Or somebody tells the server to wait no longer.
          if (number === 3) for (const session of sessions()) session.cancel(Infinity, true)
          cluster.standbyIsBack()
          for (const session of sessions()) session.goOn()
        })
        break
      case 'failOver': {
        const old = sessions()
        cluster.failOver()
        // The old leader goes on with its sessions; it ends some now, and the others later.
        for (const [at, session] of old.entries()) time.after(at % 2 === number % 2 ? 1 : ms, () => session.terminate())
        break
      }
      case 'restart':
        for (const session of sessions()) session.terminate()
        break
      case 'cut':
        for (const session of sessions()) network.deliver(1, () => session.breakUp())
        break
      case 'takePool':
        // The host has other work for its connections.
        for (let count = 0; count < poolSize; count++) {
          programs[number % 2]!.pool.connect().then(
            (session) => time.after(ms, () => session.release(session.isBroken ? new Error('broken') : undefined)),
            () => undefined,
          )
        }
    }
  }

  /** While a server says nothing, each connection that is given up would leave a session behind. */
  async function seeThatNothingIsAsked(): Promise<void> {
    async function createThree(): Promise<void> {
      for (let count = 0; count < 3; count++) {
        for (const program of programs) clients.createNew(program)
        await world.pass(2 * timeoutMs)
      }
    }
    await createThree()
    // Until the host has given back what it took.
    await world.pass(60_000)
    const asked = programs.map(({ pool }) => pool.asked)
    await createThree()
    for (const [at, { pool }] of programs.entries()) {
      const isSilent = pool.asked === asked[at] || pool.isClosed || !pool.hasServed
      world.expect(isSilent, 'a silent server is asked for no more connections:', at)
    }
  }

  /** After all troubles, every store serves, and what is there is what was acknowledged. */
  async function seeThatAllIsWell(): Promise<void> {
    for (const session of sessions()) session.terminate()
    await world.pass(10)
    for (const program of programs) program.migrate()
    await world.pass(programs[0]!.longestMs)
    for (const program of programs) {
      const created = clients.createNew(program)
      program.ping()
      const lists = OWNERS.map((owner) => clients.list(program, owner, 100))
      await world.pass(program.longestMs)
      world.expect(created.outcome === 'true', 'a store serves again after all troubles:', created.outcome)
      for (const { outcome } of lists) world.expect(outcome === 'page', 'a store lists again:', outcome)
      program.store.close()
    }
  }

  if (lacksTable) for (const program of programs) program.migrate()
  await world.begin(events, begin)
  if (endsInSilence) {
    cluster.trouble(Infinity)
    network.silence()
    await seeThatNothingIsAsked()
  }
  await world.pass(20_000)
  if (endsInSilence) for (const program of programs) program.close()
  await world.pass(20_000 + 10 * timeoutMs)
  world.expect(!sessions().some(({ isLent }) => isLent), 'each connection comes back in the end')
  if (!endsInSilence) await seeThatAllIsWell()
  world.expect(time.left === 0, 'no timer is left in the end')
}
