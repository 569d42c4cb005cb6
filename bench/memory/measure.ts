import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case } from '../cases.ts'
import type { Contestant } from '../contestants.ts'
import { inOrder, settingsOf } from '../measure.ts'
import type { Measured } from '../report/table.ts'
import { YOUNG_ROOM } from '../server-process.ts'

/** What a contestant took in one round, client and server, in microseconds for each request. */
export interface MemoryMeasurement extends Measured {
  /** CPU time, user and system. */
  readonly cpu: number
  /** The system's part of it. */
  readonly system: number
  /** The time that the collector took. */
  readonly gc: number
}

/** The same, and the bytes of the first response's head. */
interface WithHead extends MemoryMeasurement {
  readonly head: number
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
  /** As many as all slices have. */
  readonly requests: number
}

/** Ends after so many requests, or after so long. */
export interface SliceOrder {
  readonly requests: number
  readonly seconds: number
}

/** What the requests of a slice took together, in microseconds. */
export interface Slice extends MemoryMeasurement {
  readonly answered: number
}

/** What the files of contestants are named from. */
const BENCH = new URL('../', import.meta.url)

const WARM_UP = 20_000
const SLICES = 40
const SLICE_REQUESTS = 2000

/** How long a contestant may take to get ready, and for a slice. */
const LIMIT_MS = 120_000

/**
 * Starts each contestant afresh, as V8 may be in one mood or another for all of a process. Then all have a slice of the
 * requests in turn, so that what the machine does meanwhile weighs on all of them.
 */
export async function measureInMemory(
  theCase: Case,
  contestants: readonly Contestant[],
  { connections, duration }: { readonly connections: number; readonly duration: number },
): Promise<WithHead[]> {
  const heads: number[] = []
  const children: ChildProcess[] = []
  const slices: Slice[][] = contestants.map(() => [])
  async function next(place: number): Promise<unknown> {
    const stop = new AbortController()
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(LIMIT_MS)])
    const [child, { name }] = [children[place]!, contestants[place]!]
    const end = once(child, 'exit', { signal }).then(() => Promise.reject(new Error(`${name} failed ${theCase.name}`)))
    try {
      return (await Promise.race([once(child, 'message', { signal }), end]))[0]
    } finally {
      stop.abort()
    }
  }
  try {
    for (const [place, { file, constant = false, ...contestant }] of contestants.entries()) {
      const order: Order = {
        case: theCase.name,
        file: new URL(file, BENCH).href,
        isConstant: constant,
        given: settingsOf(theCase, { file, ...contestant }),
        connections,
        warmUp: WARM_UP,
        requests: SLICES * SLICE_REQUESTS,
      }
      children.push(start(order))
      heads.push((await next(place)) as number)
    }
    const order: SliceOrder = { requests: SLICE_REQUESTS, seconds: duration / SLICES }
    for (let slice = 0; slice < SLICES; slice++) {
      for (const place of inOrder([...children.keys()], slice)) {
        children[place]!.send(order)
        slices[place]!.push((await next(place)) as Slice)
      }
    }
  } finally {
    for (const child of children) {
      if (child.exitCode !== null) continue
      const exit = once(child, 'exit')
      child.disconnect()
      await exit
    }
  }
  return slices.map((each, place) => {
    const sum = (figure: keyof Slice): number => each.reduce((total, slice) => total + slice[figure]!, 0)
    const [cpu, system, gc] = ['cpu', 'system', 'gc'].map((figure) => sum(figure) / sum('answered'))
    return { cpu: cpu!, system: system!, gc: gc!, head: heads[place]! }
  })
}

function start(order: Order): ChildProcess {
  // Node itself takes the types out, where it can, and leaves what is timed as it is written.
  const options = [YOUNG_ROOM, ...(process.features.typescript ? [] : process.execArgv)]
  return fork(fileURLToPath(new URL('process.ts', import.meta.url)), [JSON.stringify(order)], {
    ...(CORE === undefined
      ? { execArgv: options }
      : { execPath: 'taskset', execArgv: ['--cpu-list', CORE, process.execPath, ...options] }),
    env: { ...process.env, NODE_ENV: 'production' },
  })
}

/** The last core that this process may use, on Linux: on one core, threads that collect garbage wait for no other. */
const CORE = spawnSync('taskset', ['--version']).status === 0 ? lastCore() : undefined

function lastCore(): string {
  return /^Cpus_allowed_list:.*?(\d+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!
}
