import { readFileSync, writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { CASES } from './cases.ts'
import { CONTESTANTS, otherCheckout } from './contestants.ts'
import { measureRound, type Measurement } from './measure.ts'
import { formatCase, formatSummary, type CaseResult } from './table.ts'

const HELP = `Compares the CPU time of plant-store with that of other servers.

  npm run bench -- [options]

  --case <name>        one case only, can be repeated: ${CASES.map(({ name }) => `"${name}"`).join(', ')}
  --only <text>        contestants whose name contains this text, and plant-store; can be repeated
  --against <folder>   adds plant-store from another checkout, which must be built
  --rounds <n>         processes of each contestant (default 4)
  --seconds <n>        how long each process is measured (default 1)
  --plants <n>         plants that exist before (default 10000)
  --connections <n>    connections that send requests at the same time (default 64)
  --publish            write the results into README.md and bench/README.md
  --help`

const { values } = parseArgs({
  options: {
    case: { type: 'string', multiple: true, default: CASES.map(({ name }) => name) },
    only: { type: 'string', multiple: true, default: [''] },
    against: { type: 'string' },
    rounds: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '1' },
    plants: { type: 'string', default: '10000' },
    connections: { type: 'string', default: '64' },
    publish: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const settings = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  plants: Number(values.plants),
  connections: Number(values.connections),
}
const cases = CASES.filter(({ name }) => values.case.includes(name))
const contestants = [
  ...CONTESTANTS.filter(({ name }) => name === 'plant-store' || values.only.some((text) => name.includes(text))),
  ...(values.against === undefined ? [] : [otherCheckout(values.against)]),
]

async function main(): Promise<void> {
  const total = cases.length * settings.rounds
  // A process takes about two seconds to start, to create its plants and to warm up.
  const estimate = Math.ceil((total * contestants.length * (2 + settings.seconds)) / 60)
  const { version, platform } = process
  console.log(
    `Measuring ${contestants.length} servers in ${cases.length} cases, on Node ${version} (${platform}). ` +
      `This takes about ${estimate} ${estimate === 1 ? 'minute' : 'minutes'}.`,
  )
  const start = performance.now()
  const results: CaseResult[] = []
  for (const [index, theCase] of cases.entries()) {
    const rounds: Measurement[][] = []
    const getResult = (): CaseResult => ({
      name: theCase.name,
      rows: contestants.map(({ name }, i) => ({ name, rounds: rounds.map((round) => round[i]!) })),
    })
    for (let round = 1; round <= settings.rounds; round++) {
      const done = index * settings.rounds + round - 1
      const perRound = (performance.now() - start) / 1000 / done
      const left = done === 0 ? '' : `, ${Math.round(perRound * (total - done))} s left`
      showProgress(
        `case ${index + 1} of ${cases.length} (${theCase.name}), round ${round} of ${settings.rounds}${left}`,
      )
      rounds.push(await measureRound(theCase, contestants, settings))
      showProgress('')
      // Shows figures within a minute, although all rounds of a case take longer on a slow machine.
      if (done === 0 && settings.rounds > 1) console.log(`\nAfter the first round:\n\n${formatCase(getResult())}`)
    }
    results.push(getResult())
    console.log(`\n${formatCase(getResult())}`)
  }
  const summary = formatSummary(results)
  if (results.length > 1) console.log(`\n${summary}`)
  if (values.publish) {
    publish('README.md', formatSummary(results, false))
    const ratios = "After each time: plant-store's time divided by it, with the 95% confidence interval.\n\n"
    publish('bench/README.md', ratios + summary)
  }
}

/** Replaces the line that shows what is being measured. Where there's no terminal, prints each line. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
  else if (text !== '') process.stderr.write(`${text}\n`)
}

/** Replaces the figures in a document. */
function publish(file: string, summary: string): void {
  const heading = `CPU time per request in microseconds on Node ${process.version}; lower is better.`
  const figures = `${heading}\n\n${summary}`
  const text = readFileSync(file, 'utf8')
  const marked = /(?<=<!-- figures -->\n)[^]*(?=\n<!-- end of figures -->)/
  if (!marked.test(text)) throw new Error(`${file} lacks the comments between which the figures belong`)
  writeFileSync(
    file,
    text.replace(marked, () => `\n${figures}\n`),
  )
}

if (values.help) console.log(HELP)
else if (cases.length === 0) throw new Error(`unknown case: ${values.case.join()}; see --help`)
else await main()
