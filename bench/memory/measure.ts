import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case } from '../cases.ts'
import type { Contestant } from '../contestants.ts'
import { orderForSlice, contestantSettingsOf } from '../measure.ts'
import type { RoundMetrics } from '../report/table.ts'
import { YOUNG_GENERATION_FLAG } from '../server-process.ts'

/** The average cost of a request in one round, in microseconds. Includes both client and server. */
export interface MemoryMeasurement extends RoundMetrics {
  /** User and system CPU time. */
  readonly cpu: number
  /** System CPU time. */
  readonly system: number
  /** Time spent in garbage collection. */
  readonly gc: number
}

interface MeasurementWithHead extends MemoryMeasurement {
  /** The size of the first response's head, in bytes. */
  readonly head: number
}

/** The options of a contestant's process. */
export interface ProcessOptions {
  readonly case: string
  readonly file: string
  /** Whether the contestant sends a constant response, and so doesn't need any plants. */
  readonly isConstant: boolean
  readonly contestantSettings: object
  readonly connections: number
  readonly warmUp: number
  /** The number of requests in all slices. */
  readonly requests: number
}

/** A slice ends when either limit is reached. */
export interface SliceLimits {
  readonly requests: number
  readonly seconds: number
}

/** The cost of all requests of a slice, in microseconds. */
export interface SliceResult extends MemoryMeasurement {
  readonly responseCount: number
}

/** The base URL of the contestants' files. */
const BENCH_URL = new URL('../', import.meta.url)

const WARM_UP_REQUESTS = 20_000
const SLICE_COUNT = 40
const SLICE_REQUESTS = 2000

/** Timeout for starting a contestant, and for each slice. */
const MESSAGE_TIMEOUT_MS = 120_000

/**
 * Starts a new process for each contestant, because the same code may permanently cost more in one process than in
 * another. Then the contestants take turns in slices, so that other load on the machine affects all of them equally.
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
      Promise.reject(new Error(`The process of ${name} exited during ${theCase.name}.`)),
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
    const [cpu, system, gc] = ['cpu', 'system', 'gc'].map((metric) => sum(metric) / sum('responseCount'))
    return { cpu: cpu!, system: system!, gc: gc!, head: heads[index]! }
  })
}

function startProcess(processOptions: ProcessOptions): ChildProcess {
  // Prefer Node's own type stripping: unlike a loader, it leaves the measured code unchanged.
  const nodeOptions = [YOUNG_GENERATION_FLAG, ...(process.features.typescript ? [] : process.execArgv)]
  return fork(fileURLToPath(new URL('process.ts', import.meta.url)), [JSON.stringify(processOptions)], {
    ...(LAST_CORE === undefined
      ? { execArgv: nodeOptions }
      : { execPath: 'taskset', execArgv: ['--cpu-list', LAST_CORE, process.execPath, ...nodeOptions] }),
    env: { ...process.env, NODE_ENV: 'production' },
  })
}

/**
 * The CPU core that the benchmark is pinned to: the last one that this process can use (Linux only). On a single core,
 * garbage collection threads don't wait for each other.
 */
const LAST_CORE = spawnSync('taskset', ['--version']).status === 0 ? readLastCore() : undefined

function readLastCore(): string {
  return /^Cpus_allowed_list:.*?(\d+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!
}
