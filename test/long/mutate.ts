// Changes the source in small ways, one after the other, and shows the changes that no test notices. Say which files or
// folders: npm run mutate -- src/http src/plants
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { EQUIVALENT_MUTANTS } from '../support/mutation/equivalent-mutants.ts'
import { createCompiler } from '../support/mutation/compiler.ts'
import { mutantsOf, type Change } from '../support/mutation/mutants.ts'
import { TestRuns } from '../support/mutation/test-runs.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Mutates the files that so many commits have changed last, the newest first. */
    commits: { type: 'string' },
    /** Stops after so many minutes. */
    minutes: { type: 'string', default: 'Infinity' },
    /** The least percentage of mutants that must be killed or listed as equivalent. */
    aim: { type: 'string', default: '0' },
  },
})

const names = values.commits === undefined ? positionals : changedFiles(Number(values.commits))
const tracked = execFileSync('git', ['ls-files', 'src'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => file.endsWith('.ts') && !file.includes('/browser/'))
const files = [
  ...new Set(names.flatMap((name) => tracked.filter((file) => `${file}/`.startsWith(`${name.replace(/\/$/, '')}/`)))),
]

/** Newest first. The oldest commit of a shallow clone seems to change all files, and is left out. */
function changedFiles(commits: number): string[] {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const shallow = git('rev-parse', '--git-path', 'shallow')
  const boundaries = existsSync(shallow) ? readFileSync(shallow, 'utf8').trim().split('\n') : []
  return git('log', '-n', `${commits}`, '--format=format:%n%H', '--name-only')
    .split('\n\n')
    .map((commit) => commit.trim().split('\n'))
    .filter(([hash]) => !boundaries.includes(hash!))
    .flatMap(([, ...changed]) => changed)
    .filter((file) => existsSync(file))
}

interface Score {
  killed: number
  equivalent: number
  survived: number
}

const scores = new Map<string, Score>()
function count(file: string, outcome: keyof Score): void {
  for (const name of [file, `${dirname(file)}/`, 'all']) {
    const score = scores.get(name) ?? { killed: 0, equivalent: 0, survived: 0 }
    score[outcome]++
    scores.set(name, score)
  }
}

function percentage({ killed, equivalent, survived }: Score): number {
  return (100 * (killed + equivalent)) / (killed + equivalent + survived)
}

function isSame(a: Change, b: Change): boolean {
  return a.file === b.file && a.original === b.original && a.mutated === b.mutated
}

const mutants = files.flatMap((file) => mutantsOf(file, readFileSync(file, 'utf8')))
console.log(`${mutants.length} mutants of ${files.length} files`)

const obsolete = EQUIVALENT_MUTANTS.filter(
  (one) => files.includes(one.file) && !mutants.some((other) => isSame(one, other)),
)
for (const { file, original, mutated } of obsolete) {
  console.error(`This mutant of ${file} is listed as equivalent, but there is none such:\n- ${original}\n+ ${mutated}`)
}

const end = performance.now() + Number(values.minutes) * 60_000
const runs = new TestRuns()
const compiles = createCompiler()
for (const [i, mutant] of mutants.entries()) {
  const { file, line, original, mutated } = mutant
  if (EQUIVALENT_MUTANTS.some((one) => isSame(one, mutant))) count(file, 'equivalent')
  else if (performance.now() > end) break
  else if (!compiles(mutant) || (await runs.findKiller(mutant)) !== undefined) count(file, 'killed')
  else {
    count(file, 'survived')
    console.log(`\n${file}:${line}\n- ${original}\n+ ${mutated}`)
  }
  if (mutants[i + 1]?.file !== file) report(file)
}
runs.end()

console.log()
for (const name of [...scores.keys()].filter((name) => !name.endsWith('.ts')).sort()) report(name)
const all = scores.get('all')
if (obsolete.length > 0 || (all !== undefined && percentage(all) < Number(values.aim))) process.exitCode = 1

function report(name: string): void {
  const { killed, equivalent, survived } = scores.get(name)!
  const score = percentage({ killed, equivalent, survived }).toFixed(1)
  console.log(`${score} % of ${name}: ${killed} killed, ${equivalent} equivalent, ${survived} survived`)
}
