import type { Case } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { measureRound } from './measure.ts'
import { measureInMemory } from './memory/measure.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { installPeers } from './peers.ts'
import { measureProcesses } from './processes.ts'
import { type Measured, ratios, type Result, type Row, type Run, table } from './report/table.ts'
import { runOn } from './other-node.ts'

function participants({ contestants, database }: Case, { against, others }: Options): readonly Contestant[] {
  if (database?.missing !== undefined) return []
  return [...contestants.filter(({ optional, name }) => !optional || against.has(name)), ...others]
}

/** Of fewer rounds the interval of a median is from the least to the most. */
const FEWEST_ROUNDS = 9

/** The width of an interval, as a part of its ratio, from which on more rounds would say little more. */
const NARROW = { socket: 0.03, memory: 0.02 }

function isNarrow(rows: readonly Row[], { wire }: Options): boolean {
  return ratios(rows).every(({ median, interval: [low, high] }) => high - low < NARROW[wire] * median)
}

/** Runs the contestants of a case, round after round, until their ratios are known or it has been enough. */
async function compare(theCase: Case, options: Options): Promise<Row[]> {
  const contestants = participants(theCase, options)
  const rows = contestants.map(({ name }) => ({ contestant: name, rounds: [] as Measured[] }))
  for (let round = 1; round <= options.rounds; round++) {
    if (round > FEWEST_ROUNDS && isNarrow(rows, options)) break
    progress(`${theCase.name}: round ${round} of ${options.rounds}`)
    const measure = options.wire === 'memory' ? measureInMemory : measureRound
    const measurements: readonly Measured[] = await measure(theCase, contestants, options)
    for (const [place, { rounds }] of rows.entries()) rounds.push(measurements[place]!)
  }
  progress('')
  return rows
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

async function main(): Promise<void> {
  let options: Options
  try {
    options = parseOptions(process.argv.slice(2))
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 2
    return
  }
  if (options.help) {
    console.log(HELP)
    return
  }
  if (options.nodes.length > 0) {
    runOn(options.nodes, process.argv.slice(2), options.json)
    return
  }
  const contestants = options.cases.flatMap((theCase) => participants(theCase, options))
  if (contestants.some(({ file }) => file.startsWith('peers/'))) installPeers()

  const { wire, connections, pipelining, duration, rounds } = options
  const settings = { node: process.version, wire, connections, pipelining, duration, rounds }
  if (!options.json) {
    console.log(
      Object.entries(settings)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
    )
  }
  const results: Result[] = []
  for (const theCase of options.cases) {
    const skipped = theCase.database?.missing
    if (skipped !== undefined) {
      results.push({ case: theCase.name, skipped, contestants: [] })
      if (!options.json) console.log(`\n${theCase.name} is skipped: ${skipped}`)
      continue
    }
    const rows = await compare(theCase, options)
    results.push({ case: theCase.name, contestants: rows })
    if (!options.json) console.log(`\n${table(theCase, rows, wire)}`)
  }
  if (options.json) console.log(JSON.stringify([{ ...settings, results }] satisfies Run[], undefined, 2))
}

// This one compares no contestants, and takes no other option.
if (process.argv.slice(2).join(' ') === '--case processes') await measureProcesses()
else await main()
