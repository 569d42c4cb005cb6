/**
 * Updates the benchmark results in README.md, bench/README.md and docs/cpu.svg. `npm run bench:publish` measures over
 * sockets and in memory, and saves the raw results to `bench/results.json`. If the path of a results file is passed,
 * the script only updates the documents from that file.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { drawChart } from './chart.ts'
import { median } from './statistics.ts'
import { computeRatio, type Row, type BenchRun, type Wire, formatInterval } from './table.ts'

interface Column {
  readonly case: string
  readonly title: string
  /** The target for the CPU time of plant-store, relative to Fastify with `@fastify/bearer-auth`. */
  readonly maxRatioToFastifyBearer: number
}

const COLUMNS: readonly Column[] = [
  { case: 'list-10', title: 'list 10', maxRatioToFastifyBearer: 0.95 },
  { case: 'list-100', title: 'list 100', maxRatioToFastifyBearer: 0.6 },
  { case: 'create', title: 'create', maxRatioToFastifyBearer: 1 },
  { case: 'delete', title: 'delete', maxRatioToFastifyBearer: 0.95 },
  { case: 'unauthorized', title: 'wrong token', maxRatioToFastifyBearer: 0.8 },
]

/** The target relative to Fastify with a simple token check, although that check does less than plant-store's. */
const MAX_RATIO_TO_FASTIFY = 1.03
/** The target for the standalone server, relative to plant-store on `node:http`. */
const MAX_RATIO_OF_PROGRAM = 1.05
/** The target for the CPU time that metrics add to a request in the standalone server, in microseconds. */
const MAX_METRICS_MICROSECONDS = 0.5

/** The row titles in the README, whose readers don't know the contestants' names. */
const ROW_TITLES = {
  floor: '`node:http` server, fixed response',
  native: 'hand-written service, no validation',
  'fastify-bearer': 'Fastify with `@fastify/bearer-auth`',
  'plant-store': 'plant-store on `node:http`',
  program: 'plant-store, standalone server',
}

/** The row titles in bench/README.md. */
const ALL_ROW_TITLES = {
  ...ROW_TITLES,
  fastify: 'Fastify with a token check in a hook',
  'program-metrics': 'plant-store, standalone server with metrics',
}

const WIRES: readonly Wire[] = ['socket', 'memory']
const ROUNDS: Readonly<Record<Wire, number>> = { socket: 9, memory: 16 }

const RESULTS_FILE = fileURLToPath(new URL('../results.json', import.meta.url))

function measureWire(wire: Wire): BenchRun[] {
  const cases = COLUMNS.map((column) => column.case).join()
  const against = 'fastify,fastify-bearer,program-metrics'
  const options = ['--wire', wire, '--case', cases, '--against', against, '--rounds', String(ROUNDS[wire])]
  const runFile = fileURLToPath(new URL('../run.ts', import.meta.url))
  const { status, stdout } = spawnSync(
    process.execPath,
    ['--import', 'tsx', runFile, ...options, '--node', '26,24', '--json'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: Infinity },
  )
  if (status !== 0) throw new Error(`The benchmark with --wire ${wire} exited with status ${status}.`)
  return JSON.parse(stdout) as BenchRun[]
}

function findRow({ results }: BenchRun, name: string, contestant: string): Row {
  return results.find((result) => result.case === name)!.contestants.find((row) => row.contestant === contestant)!
}

/**
 * Returns the median CPU time in microseconds. With a baseline, computes the difference from the baseline in each
 * round, and returns the median difference.
 */
function medianCpu(row: Row, baseline?: Row): number {
  return median(row.rounds.map(({ cpu }, round) => cpu - (baseline?.rounds[round]!.cpu ?? 0)))
}

function formatMarkdownTable(cells: readonly (readonly string[])[]): string {
  const [header, ...rows] = cells.map((row) => `| ${row.join(' | ')} |`.replaceAll('|  |', '| |'))
  return [header!, `|${'---|'.repeat(cells[0]!.length)}`, ...rows].join('\n')
}

function formatCpuTable(run: BenchRun, contestants: Readonly<Record<string, string>>): string {
  return formatMarkdownTable([
    ['', ...COLUMNS.map(({ title }) => title)],
    ...Object.entries(contestants).map(([contestant, title]) => [
      title,
      ...COLUMNS.map((column) => medianCpu(findRow(run, column.case, contestant)).toFixed(1)),
    ]),
  ])
}

/** Formats a ratio with its confidence interval. Adds a verdict unless the whole interval meets the target. */
function formatRatio(row: Row, base: Row, target = Infinity): string {
  const { median: middle, interval } = computeRatio(row, base)
  const [low, high] = interval
  const verdict = high <= target ? '' : low <= target ? ', on target' : ', missed'
  return `${middle.toFixed(2)} (${formatInterval(interval)})${verdict}`
}

/**
 * Formats the table of ratios. Results measured over sockets don't get a verdict, because all of them include the
 * kernel's CPU time.
 */
function formatTargetTable(run: BenchRun): string {
  const formatRow = (title: string, cellOf: (column: Column, rowOf: (contestant: string) => Row) => string) => [
    title,
    ...COLUMNS.map((column) => cellOf(column, (contestant) => findRow(run, column.case, contestant))),
  ]
  const targetOf = (target: number): number => (run.wire === 'memory' ? target : Infinity)
  const formatTarget = (target: number): string => `(target: ${target.toFixed(2)})`
  return formatMarkdownTable([
    ['', ...COLUMNS.map(({ title }) => title)],
    formatRow('noise: plant-store vs. a second plant-store', (_, rowOf) =>
      formatRatio(rowOf('plant-store again'), rowOf('plant-store')),
    ),
    formatRow('plant-store vs. Fastify with `@fastify/bearer-auth`', ({ maxRatioToFastifyBearer }, rowOf) =>
      formatRatio(rowOf('plant-store'), rowOf('fastify-bearer'), targetOf(maxRatioToFastifyBearer)),
    ),
    formatRow('target of the row above', ({ maxRatioToFastifyBearer }) => maxRatioToFastifyBearer.toFixed(2)),
    formatRow(
      `plant-store vs. Fastify with a token check in a hook ${formatTarget(MAX_RATIO_TO_FASTIFY)}`,
      (_, rowOf) => formatRatio(rowOf('plant-store'), rowOf('fastify'), targetOf(MAX_RATIO_TO_FASTIFY)),
    ),
    formatRow(`standalone server vs. plant-store on \`node:http\` ${formatTarget(MAX_RATIO_OF_PROGRAM)}`, (_, rowOf) =>
      formatRatio(rowOf('program'), rowOf('plant-store'), targetOf(MAX_RATIO_OF_PROGRAM)),
    ),
    formatRow(`µs that metrics add to the standalone server ${formatTarget(MAX_METRICS_MICROSECONDS)}`, (_, rowOf) =>
      medianCpu(rowOf('program-metrics'), rowOf('program')).toFixed(2),
    ),
  ])
}

/** Replaces everything between the two comments that mark the benchmark results in a document. */
function replaceMetrics(document: string, metrics: string): void {
  const file = new URL(document, import.meta.url)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/(<!-- figures -->\n)[^]*(<!-- end of figures -->)/, `$1\n${metrics}\n\n$2`))
}

const [file] = process.argv.slice(2)
if (file === undefined) writeFileSync(RESULTS_FILE, JSON.stringify(WIRES.flatMap(measureWire)))
const runs = JSON.parse(readFileSync(file ?? RESULTS_FILE, 'utf8')) as BenchRun[]

function formatSection(run: BenchRun): string {
  const { node, wire, rounds } = run
  return [
    `### Node ${node.slice(1)}, ${wire === 'memory' ? 'in memory' : 'over sockets'}`,
    `CPU time per request in microseconds, median of at most ${rounds} rounds; lower is better:`,
    formatCpuTable(run, ALL_ROW_TITLES),
    'Ratios of CPU times, with 95% confidence intervals:',
    formatTargetTable(run),
  ].join('\n\n')
}

const socketRun = runs.find(({ wire }) => wire === 'socket')!
replaceMetrics(
  '../../README.md',
  `CPU time per request in microseconds, on Node ${socketRun.node.slice(1)}; lower is better:\n\n${formatCpuTable(socketRun, ROW_TITLES)}`,
)
replaceMetrics('../README.md', runs.map(formatSection).join('\n\n'))
writeFileSync(
  new URL('../../docs/cpu.svg', import.meta.url),
  `${drawChart(socketRun, Object.fromEntries(COLUMNS.map((column) => [column.case, column.title])), ROW_TITLES)}\n`,
)
