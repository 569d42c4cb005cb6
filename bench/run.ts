import type { Case } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { measureRound } from './measure.ts'
import { measureInMemory } from './memory/measure.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { installPeers } from './install-peers.ts'
import { measureProcesses } from './processes.ts'
import {
  type RoundMetrics,
  computeRatios,
  type CaseResult,
  type Row,
  type BenchRun,
  formatTable,
} from './report/table.ts'
import { TimeLeft } from './report/time-left.ts'
import { runOnNodeVersions } from './node-versions.ts'

function selectContestants(
  { contestants, database }: Case,
  { against, externalContestants }: Options,
): readonly Contestant[] {
  if (database?.unavailableReason !== undefined) return []
  return [
    ...contestants.filter(({ isOptional: optional, name }) => !optional || against.has(name)),
    ...externalContestants,
  ]
}

/** With fewer rounds, the confidence interval of a median would span all measured values. */
const MIN_ROUNDS = 9

/** The rounds of a case end once the confidence interval of each ratio is narrower than this fraction of the ratio. */
const MAX_INTERVAL_WIDTH = { socket: 0.03, memory: 0.02 }

function hasNarrowIntervals(rows: readonly Row[], { wire }: Options): boolean {
  return computeRatios(rows).every(
    ({ median, interval: [low, high] }) => high - low < MAX_INTERVAL_WIDTH[wire] * median,
  )
}

/**
 * Runs rounds of a case until the ratios are precise enough, or until the maximum number of rounds is reached.
 * @param position such as "case 3 of 16"
 * @param onFirstRound called with the rows after the first round
 */
async function compare(
  theCase: Case,
  options: Options,
  position: string,
  timeLeft: TimeLeft,
  onFirstRound: (rows: readonly Row[]) => void,
): Promise<Row[]> {
  const contestants = selectContestants(theCase, options)
  const rows = contestants.map(({ name }) => ({ contestant: name, rounds: [] as RoundMetrics[] }))
  for (let round = 1; round <= options.rounds; round++) {
    if (round > MIN_ROUNDS && hasNarrowIntervals(rows, options)) {
      timeLeft.finish(0, (options.rounds - round + 1) * contestants.length)
      break
    }
    showProgress(`${position}, ${theCase.name}: round ${round} of ${options.rounds}, at most ${String(timeLeft)} left`)
    const measure = options.wire === 'memory' ? measureInMemory : measureRound
    const measurements: readonly RoundMetrics[] = await measure(theCase, contestants, options)
    for (const [index, { rounds }] of rows.entries()) rounds.push(measurements[index]!)
    timeLeft.finish(contestants.length)
    if (round === 1) {
      showProgress('')
      onFirstRound(rows)
    }
  }
  showProgress('')
  return rows
}

function showProgress(text: string): void {
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
  if (options.nodeVersions.length > 0) {
    runOnNodeVersions(options.nodeVersions, process.argv.slice(2), options.json)
    return
  }
  const contestants = options.cases.flatMap((theCase) => selectContestants(theCase, options))
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
  const timeLeft = new TimeLeft(contestants.length * rounds, duration)
  if (!options.json) {
    console.log(
      `Measures the CPU time per request in ${options.cases.length} cases, one after another. Takes at most ${String(timeLeft)}; to see less, use --case, --rounds and --duration.`,
    )
  }
  const results: CaseResult[] = []
  for (const [index, theCase] of options.cases.entries()) {
    const skipped = theCase.database?.unavailableReason
    if (skipped !== undefined) {
      results.push({ case: theCase.name, skipped, contestants: [] })
      if (!options.json) console.log(`\nskipping ${theCase.name}: ${skipped}`)
      continue
    }
    const position = `case ${index + 1} of ${options.cases.length}`
    if (!options.json && !process.stderr.isTTY) console.log(`\n${position}, at most ${String(timeLeft)} left`)
    const rows = await compare(theCase, options, position, timeLeft, (firstRows) => {
      // The other tables don't appear before all rounds of their case are complete.
      if (index > 0 || rounds === 1 || options.json) return
      console.log(`\nAfter the first of at most ${rounds} rounds:\n${formatTable(theCase, firstRows, wire)}`)
    })
    results.push({ case: theCase.name, contestants: rows })
    if (!options.json) console.log(`\n${formatTable(theCase, rows, wire)}`)
  }
  if (options.json) console.log(JSON.stringify([{ ...settings, results }] satisfies BenchRun[], undefined, 2))
}

// The processes case doesn't compare contestants and can't be combined with other options.
if (process.argv.slice(2).join(' ') === '--case processes') await measureProcesses()
else await main()
