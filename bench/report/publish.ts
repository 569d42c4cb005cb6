/**
 * Writes the figures of the README, of this folder's README and of the chart. `npm run bench:publish` measures on both
 * wires, and keeps what it has measured in `bench/results.json`; given that file, it writes the figures again.
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
  /** The most CPU time that plant-store may take, of that of Fastify with its plugin for tokens. */
  readonly maxRatioToFastifyBearer: number
}

const COLUMNS: readonly Column[] = [
  { case: 'list-10', title: 'list 10', maxRatioToFastifyBearer: 0.95 },
  { case: 'list-100', title: 'list 100', maxRatioToFastifyBearer: 0.6 },
  { case: 'create', title: 'create', maxRatioToFastifyBearer: 1 },
  { case: 'delete', title: 'delete', maxRatioToFastifyBearer: 0.95 },
  { case: 'unauthorized', title: 'wrong token', maxRatioToFastifyBearer: 0.8 },
]

/** Never more than 3 % behind Fastify, whatever that leaves out. */
const MAX_RATIO_TO_FASTIFY = 1.03
/** The most that the program may take of the module, and that its metrics may add, in microseconds. */
const MAX_RATIO_OF_PROGRAM = 1.05
const MAX_METRICS_MICROSECONDS = 0.5

/** The rows in the README, whose readers don't know the names of the contestants. */
const ROW_TITLES = {
  floor: '`node:http` server, fixed response',
  native: 'hand-written service, no validation',
  'fastify-bearer': 'Fastify with `@fastify/bearer-auth`',
  'plant-store': 'plant-store on `node:http`',
  program: 'plant-store, standalone server',
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
  if (status !== 0) throw new Error(`the benchmark failed on the wire ${wire}`)
  return JSON.parse(stdout) as BenchRun[]
}

function findRow({ results }: BenchRun, name: string, contestant: string): Row {
  return results.find((result) => result.case === name)!.contestants.find((row) => row.contestant === contestant)!
}

/** CPU time in microseconds, within each round more than that of another contestant. */
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

/** A ratio with its interval, and what that says of an aim: no more than that is known. */
function formatRatio(row: Row, base: Row, target = Infinity): string {
  const { median: middle, interval } = computeRatio(row, base)
  const [low, high] = interval
  const verdict = high <= target ? '' : low <= target ? ', equal' : ', missed'
  return `${middle.toFixed(2)} (${formatInterval(interval)})${verdict}`
}

/** The aims are those without the kernel, which is a part of each figure on sockets. */
function formatTargetTable(run: BenchRun): string {
  const targetOf = (target: number): number => (run.wire === 'memory' ? target : Infinity)
  const formatTitle = (name: string, target: number): string => `${name}, at most ${target.toFixed(2)}`
  return formatMarkdownTable([
    [
      '',
      'plant-store again',
      'of fastify-bearer',
      'at most',
      formatTitle('of fastify', MAX_RATIO_TO_FASTIFY),
      formatTitle('the program, of plant-store', MAX_RATIO_OF_PROGRAM),
      formatTitle('metrics, µs', MAX_METRICS_MICROSECONDS),
    ],
    ...COLUMNS.map(({ case: name, title, maxRatioToFastifyBearer }) => {
      const rowOf = (contestant: string): Row => findRow(run, name, contestant)
      return [
        title,
        formatRatio(rowOf('plant-store again'), rowOf('plant-store')),
        formatRatio(rowOf('plant-store'), rowOf('fastify-bearer'), targetOf(maxRatioToFastifyBearer)),
        maxRatioToFastifyBearer.toFixed(2),
        formatRatio(rowOf('plant-store'), rowOf('fastify'), targetOf(MAX_RATIO_TO_FASTIFY)),
        formatRatio(rowOf('program'), rowOf('plant-store'), targetOf(MAX_RATIO_OF_PROGRAM)),
        medianCpu(rowOf('program-metrics'), rowOf('program')).toFixed(2),
      ]
    }),
  ])
}

/** Puts figures between the two comments of a document that say where they go. */
function replaceMetrics(document: string, metrics: string): void {
  const file = new URL(document, import.meta.url)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/(<!-- figures -->\n)[^]*(<!-- end of figures -->)/, `$1\n${metrics}\n\n$2`))
}

const [file] = process.argv.slice(2)
if (file === undefined) writeFileSync(RESULTS_FILE, JSON.stringify(WIRES.flatMap(measureWire)))
const runs = JSON.parse(readFileSync(file ?? RESULTS_FILE, 'utf8')) as BenchRun[]
const ALL_CONTESTANTS = [...Object.keys(ROW_TITLES), 'fastify', 'program-metrics']

function formatSection(run: BenchRun): string {
  const { node, wire, rounds } = run
  const title = `### Node ${node.slice(1)}, ${wire === 'memory' ? 'connections in memory' : 'sockets'}`
  return [
    title,
    `CPU µs per request, at most ${rounds} rounds:`,
    formatCpuTable(run, Object.fromEntries(ALL_CONTESTANTS.map((name) => [name, name]))),
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
  `${drawChart(
    socketRun,
    COLUMNS.map((column) => column.case),
    Object.keys(ROW_TITLES),
  )}\n`,
)
