import { PLANT_STORE } from './contestants.ts'
import type { Measurement } from './measure.ts'
import { average, percentile, ratioOf } from './statistics.ts'

export interface Row {
  /** The name of the contestant. */
  readonly name: string
  readonly rounds: readonly Measurement[]
}

export interface CaseResult {
  readonly name: string
  readonly rows: readonly Row[]
}

const cpuOf = ({ rounds }: Row): number[] => rounds.map(({ cpu }) => cpu)

/** Formats the CPU time of plant-store, divided by that of another contestant. */
function formatRatio(row: Row, rows: readonly Row[]): string {
  if (row.name === PLANT_STORE.name) return ''
  const { mean, low, high } = ratioOf(cpuOf(rows.find(({ name }) => name === PLANT_STORE.name)!), cpuOf(row))
  const interval = high === Infinity ? '' : ` (${low.toFixed(2)}–${high.toFixed(2)})`
  return `${mean.toFixed(2)}${interval}`
}

/** Formats all measurements of a case. */
export function formatCase({ name, rows }: CaseResult): string {
  const header = [name, 'CPU µs/request', 'plant-store ÷ this', 'requests/s', 'p50 ms', 'p99 ms']
  const body = rows.map((row) => {
    const latencies = row.rounds.flatMap(({ latencies }) => latencies)
    const rates = row.rounds.map(({ requestsPerSecond }) => requestsPerSecond)
    return [
      row.name,
      average(cpuOf(row)).toFixed(1),
      formatRatio(row, rows),
      average(rates).toFixed(0),
      percentile(latencies, 50).toFixed(2),
      percentile(latencies, 99).toFixed(2),
    ]
  })
  return formatTable([header, ...body])
}

/** Formats the CPU times of all cases, by default with the ratios of plant-store. */
export function formatSummary(results: readonly CaseResult[], hasRatios = true): string {
  const names = results[0]!.rows.map(({ name }) => name)
  const body = names.map((contestant, i) => [
    contestant,
    ...results.map(({ rows }) => {
      const ratio = hasRatios ? formatRatio(rows[i]!, rows) : ''
      return `${average(cpuOf(rows[i]!)).toFixed(1)}${ratio === '' ? '' : `, ${ratio}`}`
    }),
  ])
  return formatTable([['', ...results.map(({ name }) => name)], ...body])
}

/** Formats rows of cells as a Markdown table, with columns of equal width. */
function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(3, ...rows.map((row) => row[column]!.length)))
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`)
  lines.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`)
  return lines.join('\n')
}
