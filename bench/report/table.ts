import type { Case } from '../cases.ts'
import { PLANT_STORE } from '../contestants.ts'
import { median, medianInterval } from './statistics.ts'

/** What the requests go over: sockets, or connections in memory. */
export type Wire = 'socket' | 'memory'

/** The figures of one contestant in one round. Each wire has its own, and both the CPU time. */
export interface RoundMetrics {
  readonly cpu: number
  readonly [metric: string]: number
}

/** A contestant with its measurements, one a round. */
export interface Row {
  readonly contestant: string
  readonly rounds: readonly RoundMetrics[]
}

/** What a case has come to. */
export interface CaseResult {
  readonly case: string
  /** Why it was not run. */
  readonly skipped?: string
  readonly contestants: readonly Row[]
}

/** What `--json` prints of each version of Node. */
export interface BenchRun {
  readonly node: string
  readonly wire: Wire
  readonly connections: number
  readonly pipelining: number
  readonly duration: number
  /** The most that each contestant had. */
  readonly rounds: number
  readonly results: readonly CaseResult[]
}

interface Column {
  readonly title: string
  readonly metric: string
  readonly digits: number
  /** Shows the least of the rounds in place of their median. */
  readonly showsMinimum?: true
  /** Is followed by what it is to that of the first row. */
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
  { title: 'collector', metric: 'gc', digits: 2 },
  { ...CPU, title: 'least', showsMinimum: true },
  { ...CPU, hasRatio: true },
]

const INTERVAL_TITLE = '95 %'

/** What one contestant costs of another, in CPU time. */
export interface Ratio {
  readonly contestant: string
  readonly base: string
  readonly median: number
  /** Where the median lies, with 95 %. */
  readonly interval: readonly [low: number, high: number]
}

/** What each costs of the first, and what this service costs of each. */
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
 * The table of one case: of every figure the median over the rounds, of the ratios too. Below it stands what this
 * service costs of the others.
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
    .map(({ base, median: middle, interval }) => `${middle.toFixed(2)} of ${base} (${formatInterval(interval)})`)
  const sentence = others.length === 0 ? [] : [`CPU time of ${PLANT_STORE.name}: ${others.join(', ')}`]
  return [name, formatLine(header), ...cells.map(formatLine), ...sentence].join('\n')
}

export function formatInterval(interval: Ratio['interval'] | undefined): string {
  return interval === undefined ? '' : interval.map((bound) => bound.toFixed(2)).join('–')
}

/** Within a round both ran side by side: what the machine did meanwhile weighs on both. */
function computeRoundRatios(row: Row, base: Row, metric: string): number[] {
  return row.rounds.map((measured, round) => measured[metric]! / (base.rounds[round]?.[metric] ?? NaN))
}
