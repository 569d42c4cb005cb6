import type { Case } from './cases.ts'
import type { Measurement } from './measure.ts'
import { median } from './statistics.ts'

/** A contestant with its measurements, one a round. */
export interface Row {
  readonly contestant: string
  readonly rounds: readonly Measurement[]
}

interface Column {
  readonly title: string
  readonly figure: keyof Measurement
  readonly digits: number
  /** Is followed by what it is to that of the first row. */
  readonly ratio?: true
}

const COLUMNS: readonly Column[] = [
  { title: 'req/s', figure: 'requestsPerSecond', digits: 0, ratio: true },
  { title: 'p50 ms', figure: 'p50', digits: 2, ratio: true },
  { title: 'p90', figure: 'p90', digits: 2 },
  { title: 'p99', figure: 'p99', digits: 2, ratio: true },
  { title: 'p99.9', figure: 'p999', digits: 2 },
  { title: 'max', figure: 'max', digits: 2 },
  { title: 'CPU µs/req', figure: 'cpu', digits: 2, ratio: true },
]

/** The table of one case: of every figure the median over the rounds, of the ratios too. */
export function table({ name }: Case, rows: readonly Row[]): string {
  const header = ['', ...COLUMNS.flatMap(({ title, ratio }) => (ratio ? [title, 'ratio'] : [title]))]
  const cells = rows.map(({ contestant, rounds }) => [
    contestant,
    ...COLUMNS.flatMap(({ figure, digits, ratio }) => {
      const value = median(rounds.map((round) => round[figure])).toFixed(digits)
      return ratio ? [value, ratioTo(rows[0], rounds, figure).toFixed(2)] : [value]
    }),
  ])
  const widths = header.map((title, column) => Math.max(title.length, ...cells.map((row) => row[column]?.length ?? 0)))
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)
  const line = (row: readonly string[]): string => row.map(pad).join('  ')
  return [name, line(header), ...cells.map(line)].join('\n')
}

/** Within a round both ran one after the other: what the machine did meanwhile weighs on both. */
function ratioTo(first: Row | undefined, rounds: readonly Measurement[], figure: keyof Measurement): number {
  return median(rounds.map((measured, round) => measured[figure] / (first?.rounds[round]?.[figure] ?? NaN)))
}
