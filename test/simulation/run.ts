// Runs the simulation of one system: npm run simulate -- postgres --seeds 100000 --from 1
// --seed 7 replays a single seed, --mutants counts how many seeds detect each mutant, --count prints only the number of
// failing seeds.
import { parseArgs } from 'node:util'
import { countDetectingSeeds } from './mutants.ts'
import { systems } from './systems.ts'
import { findViolation } from './simulation.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    count: { type: 'boolean', default: false },
  },
})
const selected = systems.find(({ name }) => name === positionals[0])
if (selected === undefined) throw new Error(`npm run simulate -- ${systems.map(({ name }) => name).join('|')}`)
const system = selected
const firstSeed = Number(values.seed ?? values.from)
const seeds = Array.from(
  { length: values.seed === undefined ? Number(values.seeds) : 1 },
  (_, index) => firstSeed + index,
)

/** Prints the first three seeds that violate a rule. */
async function runSeeds(): Promise<void> {
  const startedAt = performance.now()
  let violationCount = 0
  for (const seed of seeds) {
    const violation = await findViolation(system, seed)
    if (violation === undefined) continue
    console.log(violation)
    if (++violationCount === 3) break
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const result = violationCount === 0 ? 'no violations' : `${violationCount} violation(s)`
  console.log(`${system.name}: ${result} in ${seeds.length} seeds from ${firstSeed}, ${seconds} s`)
  process.exitCode = violationCount === 0 ? 0 : 1
}

/** Prints how many seeds violate a rule. */
async function countViolations(): Promise<void> {
  let violationCount = 0
  for (const seed of seeds) if ((await findViolation(system, seed, false)) !== undefined) violationCount++
  console.log(violationCount)
}

/** Prints how many seeds detect each mutant. Fails if a mutant is never detected. */
function measureMutants(): void {
  for (const [file, mutants] of Object.entries(system.mutants)) {
    for (const mutant of mutants) {
      const detectingSeeds = countDetectingSeeds(system.name, file, mutant)
      console.log(String(detectingSeeds).padStart(5), mutant[0])
      if (detectingSeeds === 0) process.exitCode = 1
    }
  }
}

// The stack traces of simulated errors are never printed, and capturing them takes a seventh of the time.
Error.stackTraceLimit = 0
if (values.mutants) measureMutants()
else await (values.count ? countViolations() : runSeeds())
