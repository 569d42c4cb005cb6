import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case } from '../cases.ts'
import type { Contestant } from '../contestants.ts'
import { orderForSlice, contestantSettingsOf } from '../measure.ts'
import type { RoundMetrics } from '../report/table.ts'
import { YOUNG_GENERATION_FLAG } from '../server-process.ts'

/** What a contestant took in one round, client and server, in microseconds for each request. */
export interface MemoryMeasurement extends RoundMetrics {
  /** CPU time, user and system. */
  readonly cpu: number
  /** The system's part of it. */
  readonly system: number
  /** The time that the collector took. */
  readonly gc: number
}

/** The same, and the bytes of the first response's head. */
interface MeasurementWithHead extends MemoryMeasurement {
  readonly head: number
}

/** What the process of a contestant is to do. */
export interface ProcessOptions {
  readonly case: string
  readonly file: string
  /** Whether it keeps no plants. */
  readonly isConstant: boolean
  readonly contestantSettings: object
  readonly connections: number
  readonly warmUp: number
  /** As many as all slices have. */
  readonly requests: number
}

/** Ends after so many requests, or after so long. */
export interface SliceLimits {
  readonly requests: number
  readonly seconds: number
}

/** What the requests of a slice took together, in microseconds. */
export interface SliceResult extends MemoryMeasurement {
  readonly responseCount: number
}

/** What the files of contestants are named from. */
const BENCH_URL = new URL('../', import.meta.url)

const WARM_UP_REQUESTS = 20_000
const SLICE_COUNT = 40
const SLICE_REQUESTS = 2000

/** How long a contestant may take to get ready, and for a slice. */
const MESSAGE_TIMEOUT_MS = 120_000

/**
 * Starts each contestant afresh, as V8 may be in one mood or another for all of a process. Then all have a slice of the
 * requests in turn, so that what the machine does meanwhile weighs on all of them.
 */
export async function measureInMemory(
  theCase: Case,
  contestants: readonly Contestant[],
  { connections, duration }: { readonly connections: number; readonly duration: number },
): Promise<MeasurementWithHead[]> {
  const heads: number[] = []
  const children: ChildProcess[] = []
  const slices: SliceResult[][] = contestants.map(() => [])
  async function waitForMessage(index: number): Promise<unknown> {
    const controller = new AbortController()
    const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(MESSAGE_TIMEOUT_MS)])
    const [child, { name }] = [children[index]!, contestants[index]!]
    const exited = once(child, 'exit', { signal }).then(() =>
      Promise.reject(new Error(`${name} failed ${theCase.name}`)),
    )
    try {
      return (await Promise.race([once(child, 'message', { signal }), exited]))[0]
    } finally {
      controller.abort()
    }
  }
  try {
    for (const [index, { file, isConstant = false, ...contestant }] of contestants.entries()) {
      const processOptions: ProcessOptions = {
        case: theCase.name,
        file: new URL(file, BENCH_URL).href,
        isConstant,
        contestantSettings: contestantSettingsOf(theCase, { file, ...contestant }),
        connections,
        warmUp: WARM_UP_REQUESTS,
        requests: SLICE_COUNT * SLICE_REQUESTS,
      }
      children.push(startProcess(processOptions))
      heads.push((await waitForMessage(index)) as number)
    }
    const sliceLimits: SliceLimits = { requests: SLICE_REQUESTS, seconds: duration / SLICE_COUNT }
    for (let slice = 0; slice < SLICE_COUNT; slice++) {
      for (const index of orderForSlice([...children.keys()], slice)) {
        children[index]!.send(sliceLimits)
        slices[index]!.push((await waitForMessage(index)) as SliceResult)
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
  return slices.map((sliceResults, index) => {
    const sum = (metric: keyof SliceResult): number => sliceResults.reduce((total, slice) => total + slice[metric]!, 0)
    const [cpu, system, gc] = ['cpu', 'system', 'gc'].map((metric) => sum(metric) / sum('answered'))
    return { cpu: cpu!, system: system!, gc: gc!, head: heads[index]! }
  })
}

function startProcess(processOptions: ProcessOptions): ChildProcess {
  // Node itself takes the types out, where it can, and leaves what is timed as it is written.
  const nodeOptions = [YOUNG_GENERATION_FLAG, ...(process.features.typescript ? [] : process.execArgv)]
  return fork(fileURLToPath(new URL('process.ts', import.meta.url)), [JSON.stringify(processOptions)], {
    ...(LAST_CORE === undefined
      ? { execArgv: nodeOptions }
      : { execPath: 'taskset', execArgv: ['--cpu-list', LAST_CORE, process.execPath, ...nodeOptions] }),
    env: { ...process.env, NODE_ENV: 'production' },
  })
}

/** The last core that this process may use, on Linux: on one core, threads that collect garbage wait for no other. */
const LAST_CORE = spawnSync('taskset', ['--version']).status === 0 ? readLastCore() : undefined

function readLastCore(): string {
  return /^Cpus_allowed_list:.*?(\d+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!
}
