/**
 * Writes the figures of the README, of this folder's README and of the chart. `npm run bench:publish` measures on both
 * wires, and keeps what it has measured in `bench/results.json`; given that file, it writes the figures again.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { draw } from './chart.ts'
import { median } from './statistics.ts'
import { ratio, type Row, type Run, type Wire, written } from './table.ts'

interface Column {
  readonly case: string
  readonly title: string
  /** The most CPU time that plant-store may take, of that of Fastify with its plugin for tokens. */
  readonly ofFastifyBearer: number
}

const COLUMNS: readonly Column[] = [
  { case: 'list-10', title: 'list 10', ofFastifyBearer: 0.95 },
  { case: 'list-100', title: 'list 100', ofFastifyBearer: 0.6 },
  { case: 'create', title: 'create', ofFastifyBearer: 1 },
  { case: 'delete', title: 'delete', ofFastifyBearer: 0.95 },
  { case: 'unauthorized', title: 'wrong token', ofFastifyBearer: 0.8 },
]

/** Never more than 3 % behind Fastify, whatever that leaves out. */
const OF_FASTIFY = 1.03
/** The most that the program may take of the module, and that its metrics may add, in microseconds. */
const PROGRAM_OF_MODULE = 1.05
const METRICS_MICROSECONDS = 0.5

/** The rows of the README, in words for people. */
const NAMES = {
  floor: 'a listener that sends constant bytes',
  native: 'the same service by hand, without the checks',
  'fastify-bearer': 'Fastify with its bearer plugin',
  'plant-store': 'plant-store',
  program: 'the program',
}

const WIRES: readonly Wire[] = ['socket', 'memory']
const ROUNDS: Readonly<Record<Wire, number>> = { socket: 9, memory: 16 }

const RESULTS = fileURLToPath(new URL('../results.json', import.meta.url))

function measure(wire: Wire): Run[] {
  const cases = COLUMNS.map((column) => column.case).join()
  const against = 'fastify,fastify-bearer,program-metrics'
  const options = ['--wire', wire, '--case', cases, '--against', against, '--rounds', String(ROUNDS[wire])]
  const run = fileURLToPath(new URL('../run.ts', import.meta.url))
  const { status, stdout } = spawnSync(
    process.execPath,
    ['--import', 'tsx', run, ...options, '--node', '26,24', '--json'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: Infinity },
  )
  if (status !== 0) throw new Error(`the benchmark failed on the wire ${wire}`)
  return JSON.parse(stdout) as Run[]
}

function rowOf({ results }: Run, name: string, contestant: string): Row {
  return results.find((result) => result.case === name)!.contestants.find((row) => row.contestant === contestant)!
}

/** CPU time in microseconds, within each round more than that of another contestant. */
function cpu(row: Row, above?: Row): number {
  return median(row.rounds.map(({ cpu }, round) => cpu - (above?.rounds[round]!.cpu ?? 0)))
}

function tableOf(cells: readonly (readonly string[])[]): string {
  const [header, ...rows] = cells.map((row) => `| ${row.join(' | ')} |`.replaceAll('|  |', '| |'))
  return [header!, `|${'---|'.repeat(cells[0]!.length)}`, ...rows].join('\n')
}

function times(run: Run, contestants: Readonly<Record<string, string>>): string {
  return tableOf([
    ['', ...COLUMNS.map(({ title }) => title)],
    ...Object.entries(contestants).map(([contestant, title]) => [
      title,
      ...COLUMNS.map((column) => cpu(rowOf(run, column.case, contestant)).toFixed(1)),
    ]),
  ])
}

/** A ratio with its interval, and what that says of an aim: no more than that is known. */
function judge(row: Row, base: Row, aim = Infinity): string {
  const { median: middle, interval } = ratio(row, base)
  const [low, high] = interval
  const verdict = high <= aim ? '' : low <= aim ? ', equal' : ', missed'
  return `${middle.toFixed(2)} (${written(interval)})${verdict}`
}

/** The aims are those without the kernel, which is a part of each figure on sockets. */
function aims(run: Run): string {
  const aimOf = (aim: number): number => (run.wire === 'memory' ? aim : Infinity)
  const title = (name: string, aim: number): string => `${name}, at most ${aim.toFixed(2)}`
  return tableOf([
    [
      '',
      'plant-store again',
      'of fastify-bearer',
      'at most',
      title('of fastify', OF_FASTIFY),
      title('the program, of plant-store', PROGRAM_OF_MODULE),
      title('metrics, µs', METRICS_MICROSECONDS),
    ],
    ...COLUMNS.map(({ case: name, title, ofFastifyBearer }) => {
      const of = (contestant: string): Row => rowOf(run, name, contestant)
      return [
        title,
        judge(of('plant-store again'), of('plant-store')),
        judge(of('plant-store'), of('fastify-bearer'), aimOf(ofFastifyBearer)),
        ofFastifyBearer.toFixed(2),
        judge(of('plant-store'), of('fastify'), aimOf(OF_FASTIFY)),
        judge(of('program'), of('plant-store'), aimOf(PROGRAM_OF_MODULE)),
        cpu(of('program-metrics'), of('program')).toFixed(2),
      ]
    }),
  ])
}

/** Puts figures between the two comments of a document that say where they go. */
function write(document: string, figures: string): void {
  const file = new URL(document, import.meta.url)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/(<!-- figures -->\n)[^]*(<!-- end of figures -->)/, `$1\n${figures}\n\n$2`))
}

const [file] = process.argv.slice(2)
if (file === undefined) writeFileSync(RESULTS, JSON.stringify(WIRES.flatMap(measure)))
const runs = JSON.parse(readFileSync(file ?? RESULTS, 'utf8')) as Run[]
const ALL = [...Object.keys(NAMES), 'fastify', 'program-metrics']

function section(run: Run): string {
  const { node, wire, rounds } = run
  const title = `### Node ${node.slice(1)}, ${wire === 'memory' ? 'connections in memory' : 'sockets'}`
  return [
    title,
    `CPU µs per request, at most ${rounds} rounds:`,
    times(run, Object.fromEntries(ALL.map((name) => [name, name]))),
    aims(run),
  ].join('\n\n')
}

const onSockets = runs.find(({ wire }) => wire === 'socket')!
write(
  '../../README.md',
  `CPU time of a request on Node ${onSockets.node.slice(1)}, in µs:\n\n${times(onSockets, NAMES)}`,
)
write('../README.md', runs.map(section).join('\n\n'))
writeFileSync(
  new URL('../../docs/cpu.svg', import.meta.url),
  `${draw(
    onSockets,
    COLUMNS.map((column) => column.case),
    Object.keys(NAMES),
  )}\n`,
)
