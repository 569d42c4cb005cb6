import type { Case } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { measure, type Measurement } from './measure.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { installPeers } from './peers.ts'
import { type Row, table } from './report.ts'

function participants({ contestants, database }: Case, { against }: Options): readonly Contestant[] {
  if (database?.missing !== undefined) return []
  return contestants.filter(({ peer, name }) => !peer || against.has(name))
}

/** Runs the contestants of a case in turn, round after round. */
async function compare(theCase: Case, options: Options): Promise<Row[]> {
  const rows = participants(theCase, options).map((contestant) => ({ contestant, rounds: [] as Measurement[] }))
  for (let round = 1; round <= options.rounds; round++) {
    for (const { contestant, rounds } of rows) {
      progress(`${theCase.name}: ${contestant.name}, round ${round} of ${options.rounds}`)
      try {
        rounds.push(await measure(theCase, contestant, options))
      } catch (error) {
        throw new Error(`${contestant.name} failed ${theCase.name}`, { cause: error })
      }
    }
  }
  progress('')
  return rows.map(({ contestant: { name }, rounds }) => ({ contestant: name, rounds }))
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
  const files = options.cases.flatMap((theCase) => participants(theCase, options).map(({ file }) => file))
  if (files.some((file) => file.startsWith('peers/'))) installPeers()

  const { connections, pipelining, duration, rounds } = options
  const settings = { node: process.version, connections, pipelining, duration, rounds }
  if (!options.json) {
    console.log(
      Object.entries(settings)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
    )
  }
  const results: { case: string; skipped?: string; contestants: Row[] }[] = []
  for (const theCase of options.cases) {
    const skipped = theCase.database?.missing
    if (skipped !== undefined) {
      results.push({ case: theCase.name, skipped, contestants: [] })
      if (!options.json) console.log(`\n${theCase.name} is skipped: ${skipped}`)
      continue
    }
    const rows = await compare(theCase, options)
    results.push({ case: theCase.name, contestants: rows })
    if (!options.json) console.log(`\n${table(theCase, rows)}`)
  }
  if (options.json) console.log(JSON.stringify({ ...settings, results }, undefined, 2))
}

await main()
