import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Case } from '../cases.ts'
import type { Contestant } from '../contestants.ts'
import { settingsOf } from '../measure.ts'
import type { Measured } from '../report/table.ts'

/** What a contestant took in one round, client and server, in microseconds for each request. */
export interface MemoryMeasurement extends Measured {
  /** CPU time, user and system. */
  readonly cpu: number
  /** The system's part of it. */
  readonly system: number
  /** The time that the collector took. */
  readonly gc: number
}

/** What the process of a contestant is to do. */
export interface Order {
  readonly case: string
  readonly file: string
  /** Whether it keeps no plants. */
  readonly isConstant: boolean
  readonly given: object
  readonly connections: number
  readonly warmUp: number
  readonly requests: number
  readonly seconds: number
}

/** What the files of contestants are named from. */
const BENCH = new URL('../', import.meta.url)

const WARM_UP = 20_000
const REQUESTS = 40_000

/** Starts each contestant afresh, one after the other, as V8 may be in one mood or another for all of a process. */
export async function measureInMemory(
  theCase: Case,
  contestants: readonly Contestant[],
  settings: { readonly connections: number; readonly duration: number },
): Promise<MemoryMeasurement[]> {
  const measurements: MemoryMeasurement[] = []
  for (const contestant of contestants) {
    const { file, name, constant = false } = contestant
    const order: Order = {
      case: theCase.name,
      file: new URL(file, BENCH).href,
      isConstant: constant,
      given: settingsOf(theCase, contestant),
      connections: settings.connections,
      warmUp: WARM_UP,
      requests: REQUESTS,
      seconds: settings.duration,
    }
    const child = fork(fileURLToPath(new URL('process.ts', import.meta.url)), [JSON.stringify(order)], {
      // Node itself takes the types out, where it can, and leaves what is timed as it is written.
      ...(process.features.typescript ? { execArgv: [] } : {}),
      env: { ...process.env, NODE_ENV: 'production' },
    })
    const exit = once(child, 'exit')
    const [measurement] = (await Promise.race([once(child, 'message'), exit])) as [MemoryMeasurement | number]
    await exit
    if (typeof measurement !== 'object') throw new Error(`${name} failed ${theCase.name}`)
    measurements.push(measurement)
  }
  return measurements
}
