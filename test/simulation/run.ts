// Plays seeds of a part: npm run simulate -- postgres --seeds 100000 --from 1; --seed 7 plays one again.
import { parseArgs } from 'node:util'
import { countFinders } from './faults.ts'
import { parts } from './parts.ts'
import { findFault } from './simulation.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    faults: { type: 'boolean', default: false },
    count: { type: 'boolean', default: false },
  },
})
const found = parts.find(({ name }) => name === positionals[0])
if (found === undefined) throw new Error(`npm run simulate -- ${parts.map(({ name }) => name).join('|')}`)
const part = found
const first = Number(values.seed ?? values.from)
const seeds = Array.from({ length: values.seed === undefined ? Number(values.seeds) : 1 }, (_, at) => first + at)

/** Prints the first seeds that break a rule. */
async function playAll(): Promise<void> {
  const startedAt = performance.now()
  let broken = 0
  for (const seed of seeds) {
    const fault = await findFault(part, seed)
    if (fault === undefined) continue
    console.log(fault)
    if (++broken === 3) break
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(
    `${part.name}: ${broken === 0 ? 'nothing' : broken} found by ${seeds.length} seeds from ${first} in ${seconds} s`,
  )
  process.exitCode = broken === 0 ? 0 : 1
}

/** Prints how many seeds break a rule. */
async function count(): Promise<void> {
  let broken = 0
  for (const seed of seeds) if ((await findFault(part, seed, false)) !== undefined) broken++
  console.log(broken)
}

/** Prints how many seeds find each fault; none may be missed by all. */
function findFaults(): void {
  for (const [file, faults] of Object.entries(part.faults)) {
    for (const fault of faults) {
      const finders = countFinders(part.name, file, fault)
      console.log(String(finders).padStart(5), fault[0])
      if (finders === 0) process.exitCode = 1
    }
  }
}

// Nobody sees the stacks of the errors that are played, which take a seventh of the time.
Error.stackTraceLimit = 0
if (values.faults) findFaults()
else await (values.count ? count() : playAll())
