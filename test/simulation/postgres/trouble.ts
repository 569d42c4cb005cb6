import type { World } from '../simulation.ts'
import type { Network } from './network.ts'
import type { Pool } from './pool.ts'
import type { Event } from './scenario.ts'
import type { Cluster } from './server.ts'
import type { Session } from './session.ts'

type Trouble = Extract<Event, { number: number }>

/** What befalls the server, the network or the pools, and passes. */
export function befallServer(
  { kind, ms, number }: Trouble,
  world: World,
  cluster: Cluster,
  network: Network,
  programs: readonly { readonly pool: Pool }[],
): void {
  const { time } = world
  const sessions = (): Session[] => programs.flatMap(({ pool }) => [...pool.sessions])
  cluster.trouble(ms)
  switch (kind) {
    case 'silence':
      network.silence()
      time.after(ms, () => network.speak())
      break
    case 'full':
      cluster.isFull = true
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
    case 'takePool': {
      // The host has other work for its connections.
      const { pool } = programs[number % 2]!
      for (let count = 0; count < pool.scenario.poolSize; count++) {
        pool.connect().then(
          (session) => time.after(ms, () => session.release(session.isBroken ? new Error('broken') : undefined)),
          () => undefined,
        )
      }
    }
  }
}
