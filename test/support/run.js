// Runs the tests: those of the files, folders and patterns that are named, or else all but the long ones. Options go to
// the test runner of Node: npm test -- test/plants 'test/**/*-store.test.ts' --test-name-pattern=limit
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('../..', import.meta.url)))

/**
 * Node reads TypeScript itself since 22.18, at half the price. Coverage of one file by processes with and without tsx cannot
 * be added up, and some tests start programs with it.
 */
const isCovered = process.env.NODE_V8_COVERAGE !== undefined
const TYPESCRIPT = process.features.typescript && !isCovered ? [] : ['--import', 'tsx']

/** A core for each, as many tests look how long something takes. */
const CONCURRENCY = `--test-concurrency=${availableParallelism()}`

/** Outages, loads, compilers and browsers: they take long by their nature, or half of the processor time of all tests. */
const LONG = [
  'test/contract/middleware.test.ts',
  'test/package/runners.test.ts',
  'test/package/typescript.test.ts',
  'test/standalone/cors-browser.test.ts',
  'test/standalone/paths/page/actions.test.ts',
  'test/standalone/paths/page/appearance.test.ts',
  'test/standalone/paths/page/token.test.ts',
  'test/stores/postgres/deployments/outage.test.ts',
  'test/stores/postgres/deployments/poolers.test.ts',
  'test/stores/postgres/deployments/production.test.ts',
  'test/stores/postgres/deployments/race.test.ts',
  'test/stores/postgres/deployments/standby.test.ts',
]

/** Continuous integration runs all tests, and so does what measures their coverage. */
const runsLong = process.env.TEST_REQUIRE_ALL === '1' || isCovered

const tests = testsIn('test').sort()

/** What `test/peers` has installed may have tests of its own. */
function testsIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return path === 'test/peers' ? [] : testsIn(path)
    return path.endsWith('.test.ts') ? [path] : []
  })
}

const WILDCARDS = { '**/': '(?:.*/)?', '*': '[^/]*' }

/** The tests that a name means. Node itself passes over names of nothing, or takes a folder for a test. */
function testsOf(name) {
  const path = relative('', name).replaceAll(sep, '/')
  const pattern = path.replace(/\*\*\/|\*|[.+?^${}()|[\]\\]/g, (part) => WILDCARDS[part] ?? `\\${part}`)
  return tests.filter((file) => new RegExp(`^${pattern}(/|$)`).test(file))
}

const args = process.argv.slice(2)
const options = args.filter((argument) => argument.startsWith('--'))
const names = args.filter((argument) => !argument.startsWith('--'))
const unknown = names.filter((name) => testsOf(name).length === 0)

if (unknown.length > 0) {
  console.error(`There is no test at ${unknown.join(', ')}. The value of an option is given after "=".`)
  process.exitCode = 2
} else {
  const files =
    names.length > 0 ? new Set(names.flatMap(testsOf)) : tests.filter((file) => runsLong || !LONG.includes(file))
  const { status, error } = spawnSync(process.execPath, [...TYPESCRIPT, CONCURRENCY, ...options, '--test', ...files], {
    stdio: 'inherit',
  })
  if (error !== undefined) throw error
  process.exitCode = status ?? 1
}
