import type { Case } from './cases.ts'
import type { Measurement } from './measure.ts'
import { median } from './statistics.ts'

/** A contestant with its measurements, one a round. */
export interface Row {
  readonly contestant: string
  readonly rounds: readonly Measurement[]
}

/** The table of one case: of every figure the median over the rounds, of the ratio too. */
export function table({ name }: Case, rows: readonly Row[]): string {
  const [first] = rows
  const header = ['', 'req/s', 'p50 ms', 'p90', 'p99', 'p99.9', 'max', 'CPU µs/req', 'ratio']
  const cells = rows.map(({ contestant, rounds }) => {
    const of = (figure: keyof Measurement): number => median(rounds.map((round) => round[figure]))
    const milliseconds = [of('p50'), of('p90'), of('p99'), of('p999'), of('max')].map((value) => value.toFixed(2))
    // Within a round both ran one after the other: what the machine did meanwhile weighs on both.
    const ratio = median(rounds.map(({ cpu }, round) => cpu / (first?.rounds[round]?.cpu ?? NaN)))
    return [contestant, of('requestsPerSecond').toFixed(0), ...milliseconds, of('cpu').toFixed(2), ratio.toFixed(2)]
  })
  const widths = header.map((title, column) => Math.max(title.length, ...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)).join('  ')
  return [name, line(header), ...cells.map(line)].join('\n')
}
