import type { Case } from '../cases.ts'
import { PLANT_STORE } from '../contestants.ts'
import { median, medianInterval } from './statistics.ts'

/** How requests are sent: over sockets or in-memory connections. */
export type Wire = 'socket' | 'memory'

/**
 * The metrics of one contestant in one round. The CPU time is always measured; the other metrics depend on the wire.
 */
export interface RoundMetrics {
  readonly cpu: number
  readonly [metric: string]: number
}

/** A contestant with its metrics in each round. */
export interface Row {
  readonly contestant: string
  readonly rounds: readonly RoundMetrics[]
}

/** The results for a case. */
export interface CaseResult {
  readonly case: string
  /** The reason why the case was skipped; absent if it wasn't. */
  readonly skipped?: string
  readonly contestants: readonly Row[]
}

/** The output of `--json` for one Node version. */
export interface BenchRun {
  readonly node: string
  readonly wire: Wire
  readonly connections: number
  readonly pipelining: number
  readonly duration: number
  /** The maximum number of rounds. */
  readonly rounds: number
  readonly results: readonly CaseResult[]
}

interface Column {
  readonly title: string
  readonly metric: string
  readonly digits: number
  /** Whether to show the minimum of the rounds instead of the median. */
  readonly showsMinimum?: true
  /** Whether the next column shows the ratio to the first row. */
  readonly hasRatio?: true
}

const CPU = { title: 'CPU µs/req', metric: 'cpu', digits: 2 } as const

const SOCKET_COLUMNS: readonly Column[] = [
  { title: 'req/s', metric: 'requestsPerSecond', digits: 0, hasRatio: true },
  { title: 'p50 ms', metric: 'p50', digits: 2, hasRatio: true },
  { title: 'p90', metric: 'p90', digits: 2 },
  { title: 'p99', metric: 'p99', digits: 2, hasRatio: true },
  { title: 'p99.9', metric: 'p999', digits: 2 },
  { title: 'max', metric: 'max', digits: 2 },
  { ...CPU, hasRatio: true },
]

const MEMORY_COLUMNS: readonly Column[] = [
  { title: 'head, bytes', metric: 'head', digits: 0 },
  { title: 'system', metric: 'system', digits: 2 },
  { title: 'GC', metric: 'gc', digits: 2 },
  { ...CPU, title: 'min', showsMinimum: true },
  { ...CPU, hasRatio: true },
]

const INTERVAL_TITLE = '95 %'

/** One contestant's CPU time relative to another's. */
export interface Ratio {
  readonly contestant: string
  readonly base: string
  readonly median: number
  /** The 95% confidence interval of the median. */
  readonly interval: readonly [low: number, high: number]
}

/** Returns the ratio of each contestant to the first one, and of plant-store to each of the others. */
export function computeRatios(rows: readonly Row[]): Ratio[] {
  const [first, ...others] = rows
  const plantStoreRow = rows.find(({ contestant }) => contestant === PLANT_STORE.name)
  const pairs = [
    ...others.map((row) => [row, first] as const),
    ...others
      .filter((row) => plantStoreRow !== first && row !== plantStoreRow)
      .map((row) => [plantStoreRow, row] as const),
  ]
  return pairs.flatMap(([row, base]) => (row === undefined || base === undefined ? [] : [computeRatio(row, base)]))
}

export function computeRatio(row: Row, base: Row): Ratio {
  const values = computeRoundRatios(row, base, 'cpu')
  return { contestant: row.contestant, base: base.contestant, median: median(values), interval: medianInterval(values) }
}

/**
 * Formats the table of a case, with the median of each metric and ratio over all rounds. A line below the table shows
 * the ratios of plant-store to the other contestants.
 */
export function formatTable({ name }: Case, rows: readonly Row[], wire: Wire): string {
  const columns = wire === 'memory' ? MEMORY_COLUMNS : SOCKET_COLUMNS
  const header = [
    '',
    ...columns.flatMap(({ title, hasRatio }) => (hasRatio ? [title, 'ratio'] : [title])),
    INTERVAL_TITLE,
  ]
  const [first] = rows
  const allRatios = computeRatios(rows)
  const cells = rows.map((row) => [
    row.contestant,
    ...columns.flatMap(({ metric, digits, hasRatio, showsMinimum }) => {
      const values = row.rounds.map((round) => round[metric]!)
      const value = (showsMinimum ? Math.min(...values) : median(values)).toFixed(digits)
      return hasRatio ? [value, median(computeRoundRatios(row, first ?? row, metric)).toFixed(2)] : [value]
    }),
    formatInterval(
      allRatios.find(({ contestant, base }) => contestant === row.contestant && base === first?.contestant)?.interval,
    ),
  ])
  const widths = header.map((title, column) => Math.max(title.length, ...cells.map((row) => row[column]?.length ?? 0)))
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)
  const formatLine = (row: readonly string[]): string => row.map(pad).join('  ').trimEnd()
  const others = allRatios
    .filter(({ contestant, base }) => contestant === PLANT_STORE.name && base !== first?.contestant)
    .map(({ base, median: middle, interval }) => `${middle.toFixed(2)} (${formatInterval(interval)}) vs. ${base}`)
  const sentence = others.length === 0 ? [] : [`CPU time ratio of ${PLANT_STORE.name}: ${others.join(', ')}`]
  return [name, formatLine(header), ...cells.map(formatLine), ...sentence].join('\n')
}

export function formatInterval(interval: Ratio['interval'] | undefined): string {
  return interval === undefined ? '' : interval.map((bound) => bound.toFixed(2)).join('–')
}

/**
 * Returns the ratio in each round. Within a round, both contestants ran side by side, so other load on the machine
 * affected both of them.
 */
function computeRoundRatios(row: Row, base: Row, metric: string): number[] {
  return row.rounds.map((measured, round) => measured[metric]! / (base.rounds[round]?.[metric] ?? NaN))
}
