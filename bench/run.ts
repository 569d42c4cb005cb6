import type { Case } from './cases.ts'
import { measure, type Measurement } from './measure.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { installPeers } from './peers.ts'
import { type Row, table } from './report.ts'

/** Runs the contestants of a case in turn, round after round. */
async function compare(theCase: Case, options: Options): Promise<Row[]> {
  const contestants = theCase.contestants.filter(({ peer, name }) => !peer || options.against.has(name))
  const rows = contestants.map((contestant) => ({ contestant, rounds: [] as Measurement[] }))
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
  if (options.against.size > 0) installPeers()

  const { connections, pipelining, duration, rounds } = options
  const settings = { node: process.version, connections, pipelining, duration, rounds }
  if (!options.json) {
    console.log(Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(', '))
  }
  const results: { case: string; contestants: Row[] }[] = []
  for (const theCase of options.cases) {
    const rows = await compare(theCase, options)
    results.push({ case: theCase.name, contestants: rows })
    if (!options.json) console.log(`\n${table(theCase, rows)}`)
  }
  if (options.json) console.log(JSON.stringify({ ...settings, results }, undefined, 2))
}

await main()
