import type { Case } from '../cases.ts'
import { PLANT_STORE } from '../contestants.ts'
import { median, medianInterval } from './statistics.ts'

/** What the requests go over: sockets, or connections in memory. */
export type Wire = 'socket' | 'memory'

/** The figures of one contestant in one round. Each wire has its own, and both the CPU time. */
export interface Measured {
  readonly cpu: number
  readonly [figure: string]: number
}

/** A contestant with its measurements, one a round. */
export interface Row {
  readonly contestant: string
  readonly rounds: readonly Measured[]
}

/** What a case has come to. */
export interface Result {
  readonly case: string
  /** Why it was not run. */
  readonly skipped?: string
  readonly contestants: readonly Row[]
}

/** What `--json` prints of each version of Node. */
export interface Run {
  readonly node: string
  readonly wire: Wire
  readonly connections: number
  readonly pipelining: number
  readonly duration: number
  /** The most that each contestant had. */
  readonly rounds: number
  readonly results: readonly Result[]
}

interface Column {
  readonly title: string
  readonly figure: string
  readonly digits: number
  /** Shows the least of the rounds in place of their median. */
  readonly least?: true
  /** Is followed by what it is to that of the first row. */
  readonly ratio?: true
}

const CPU = { title: 'CPU µs/req', figure: 'cpu', digits: 2 } as const

const ON_SOCKETS: readonly Column[] = [
  { title: 'req/s', figure: 'requestsPerSecond', digits: 0, ratio: true },
  { title: 'p50 ms', figure: 'p50', digits: 2, ratio: true },
  { title: 'p90', figure: 'p90', digits: 2 },
  { title: 'p99', figure: 'p99', digits: 2, ratio: true },
  { title: 'p99.9', figure: 'p999', digits: 2 },
  { title: 'max', figure: 'max', digits: 2 },
  { ...CPU, ratio: true },
]

const IN_MEMORY: readonly Column[] = [
  { title: 'head, bytes', figure: 'head', digits: 0 },
  { title: 'system', figure: 'system', digits: 2 },
  { title: 'collector', figure: 'gc', digits: 2 },
  { ...CPU, title: 'least', least: true },
  { ...CPU, ratio: true },
]

const INTERVAL = '95 %'

/** What one contestant costs of another, in CPU time. */
export interface Ratio {
  readonly contestant: string
  readonly of: string
  readonly median: number
  /** Where the median lies, with 95 %. */
  readonly interval: readonly [low: number, high: number]
}

/** What each costs of the first, and what this service costs of each. */
export function ratios(rows: readonly Row[]): Ratio[] {
  const [first, ...others] = rows
  const ours = rows.find(({ contestant }) => contestant === PLANT_STORE.name)
  const pairs = [
    ...others.map((row) => [row, first] as const),
    ...others.filter((row) => ours !== first && row !== ours).map((row) => [ours, row] as const),
  ]
  return pairs.flatMap(([row, base]) => (row === undefined || base === undefined ? [] : [ratio(row, base)]))
}

export function ratio(row: Row, base: Row): Ratio {
  const values = ratiosByRound(row, base, 'cpu')
  return { contestant: row.contestant, of: base.contestant, median: median(values), interval: medianInterval(values) }
}

/**
 * The table of one case: of every figure the median over the rounds, of the ratios too. Below it stands what this
 * service costs of the others.
 */
export function table({ name }: Case, rows: readonly Row[], wire: Wire): string {
  const columns = wire === 'memory' ? IN_MEMORY : ON_SOCKETS
  const header = ['', ...columns.flatMap(({ title, ratio }) => (ratio ? [title, 'ratio'] : [title])), INTERVAL]
  const [first] = rows
  const known = ratios(rows)
  const cells = rows.map((row) => [
    row.contestant,
    ...columns.flatMap(({ figure, digits, ratio, least }) => {
      const values = row.rounds.map((round) => round[figure]!)
      const value = (least ? Math.min(...values) : median(values)).toFixed(digits)
      return ratio ? [value, median(ratiosByRound(row, first ?? row, figure)).toFixed(2)] : [value]
    }),
    written(known.find(({ contestant, of }) => contestant === row.contestant && of === first?.contestant)?.interval),
  ])
  const widths = header.map((title, column) => Math.max(title.length, ...cells.map((row) => row[column]?.length ?? 0)))
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)
  const line = (row: readonly string[]): string => row.map(pad).join('  ').trimEnd()
  const others = known
    .filter(({ contestant, of }) => contestant === PLANT_STORE.name && of !== first?.contestant)
    .map(({ of, median: middle, interval }) => `${middle.toFixed(2)} of ${of} (${written(interval)})`)
  const sentence = others.length === 0 ? [] : [`CPU time of ${PLANT_STORE.name}: ${others.join(', ')}`]
  return [name, line(header), ...cells.map(line), ...sentence].join('\n')
}

export function written(interval: Ratio['interval'] | undefined): string {
  return interval === undefined ? '' : interval.map((end) => end.toFixed(2)).join('–')
}

/** Within a round both ran side by side: what the machine did meanwhile weighs on both. */
function ratiosByRound(row: Row, base: Row, figure: string): number[] {
  return row.rounds.map((measured, round) => measured[figure]! / (base.rounds[round]?.[figure] ?? NaN))
}
