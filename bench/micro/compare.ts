import { median } from '../report/statistics.ts'

/** A candidate, and how long one operation took in each round, in nanoseconds. */
export interface Row {
  readonly name: string
  readonly times: readonly number[]
}

const ROUNDS = 15
const MIN_ROUND_NS = 50e6

/** Holds the last result, so that V8 can't optimize the operation away. */
export let sink: unknown

/** Measures the candidates in turn, in several rounds, and prints the CPU time per call of each candidate. */
export function compare(title: string, candidates: Readonly<Record<string, () => unknown>>): void {
  const rows = Object.entries(candidates).map(([name, operation]) => {
    let batch = 1
    while (measureCpuNs(operation, batch) * batch < MIN_ROUND_NS) batch *= 2
    return { name, operation, batch, times: [] as number[] }
  })
  for (let round = 0; round < ROUNDS; round++) {
    for (const { operation, batch, times } of rows) times.push(measureCpuNs(operation, batch))
  }
  printRows(title, rows)
}

/** Prints the median time of each row, and the median of its ratios to the first row. */
export function printRows(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}`)
  const width = Math.max(...rows.map(({ name }) => name.length))
  for (const { name, times } of rows) {
    const ratio = median(times.map((value, round) => value / (rows[0]?.times[round] ?? NaN)))
    console.log(`  ${name.padEnd(width)}  ${formatDuration(median(times)).padStart(10)}  ${ratio.toFixed(2)}`)
  }
}

/** Measures the CPU time of one operation across all threads, including garbage collection. */
function measureCpuNs(operation: () => unknown, batch: number): number {
  const before = process.cpuUsage()
  for (let i = 0; i < batch; i++) sink = operation()
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / batch
}

function formatDuration(ns: number): string {
  if (ns < 1e3) return `${ns.toFixed(0)} ns`
  return ns < 1e6 ? `${(ns / 1e3).toFixed(2)} µs` : `${(ns / 1e6).toFixed(1)} ms`
}
