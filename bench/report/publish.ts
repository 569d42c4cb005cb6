/**
 * Writes the figures of the README, of this folder's README and of the chart, from what `npm run bench -- --json` has
 * printed: `npm run bench:publish` does both.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { draw } from './chart.ts'
import { ratio, type Row, type Run, written } from './table.ts'
import { median } from './statistics.ts'

interface Column {
  readonly case: string
  readonly title: string
  /** The most CPU time that plant-store may take, of that of floor and of Fastify. */
  readonly ofFloor?: number
  readonly ofFastify: number
}

/** Never more than 3 % behind Fastify. */
const AS_FASTIFY = 1.03
const COLUMNS: readonly Column[] = [
  { case: 'list-10', title: 'list 10', ofFloor: 1.2, ofFastify: AS_FASTIFY },
  { case: 'list-100', title: 'list 100', ofFastify: 0.7 },
  { case: 'create', title: 'create', ofFloor: 1.3, ofFastify: AS_FASTIFY },
  { case: 'delete', title: 'delete', ofFloor: 1.15, ofFastify: AS_FASTIFY },
  { case: 'unauthorized', title: 'wrong token', ofFloor: 1.15, ofFastify: AS_FASTIFY },
]

/** The most that the program may take of the module, and that its metrics may add, in microseconds. */
const PROGRAM_OF_MODULE = 1.04
const METRICS_MICROSECONDS = 0.5

/** The rows of the README, in words for people. */
const NAMES = {
  floor: 'a listener that sends constant bytes',
  native: 'the same service by hand, without the checks',
  'plant-store': 'plant-store',
  program: 'the program',
  fastify: 'Fastify',
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

/** A ratio, and whether its aim is missed. */
function judge(row: Row, base: Row, aim: number | undefined): string[] {
  const { median: middle, interval } = ratio(row, base)
  const isMissed = aim !== undefined && Number(middle.toFixed(2)) > aim
  return [`${middle.toFixed(2)} (${written(interval)})${isMissed ? ' missed' : ''}`, aim?.toFixed(2) ?? '']
}

function aims(run: Run): string {
  return tableOf([
    ['', 'of floor', 'aim', 'of Fastify', 'aim', 'the program, of plant-store', 'aim', 'metrics, µs', 'aim'],
    ...COLUMNS.map(({ case: name, title, ofFloor, ofFastify }) => {
      const of = (contestant: string): Row => rowOf(run, name, contestant)
      const metrics = cpu(of('program-metrics'), of('program'))
      return [
        title,
        ...judge(of('plant-store'), of('floor'), ofFloor),
        ...judge(of('plant-store'), of('fastify'), ofFastify),
        ...judge(of('program'), of('plant-store'), PROGRAM_OF_MODULE),
        `${metrics.toFixed(2)}${metrics > METRICS_MICROSECONDS ? ' missed' : ''}`,
        METRICS_MICROSECONDS.toFixed(2),
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

const runs = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Run[]
const [first] = runs
write('../../README.md', `CPU time of a request on Node ${first!.node.slice(1)}, in µs:\n\n${times(first!, NAMES)}`)
const all = {
  ...Object.fromEntries(Object.keys(NAMES).map((name) => [name, name])),
  'program-metrics': 'program-metrics',
}
write(
  '../README.md',
  runs
    .map((run) => {
      const { node, connections, rounds, duration } = run
      const settings = `${connections} connections, ${rounds} rounds of ${duration} s`
      return `### Node ${node.slice(1)}\n\nCPU µs per request, with ${settings}:\n\n${times(run, all)}\n\n${aims(run)}`
    })
    .join('\n\n'),
)
writeFileSync(
  new URL('../../docs/cpu.svg', import.meta.url),
  `${draw(
    first!,
    COLUMNS.map((column) => column.case),
    Object.keys(NAMES),
  )}\n`,
)
