// Runs the tests: those of the files and folders that are named, or else all but the long ones. Options go to the test
// runner of Node: npm test -- test/plants test/http/body.test.ts --test-name-pattern=limit
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compile } from './typescript-hooks.js'

process.chdir(fileURLToPath(new URL('../..', import.meta.url)))

const TYPESCRIPT_FLAGS = ['--import', import.meta.resolve('./typescript.js')]

// Once here, so that no process of a test has to do it.
for (const path of ['src', 'test', 'bench'].flatMap(listFiles)) {
  if (!/(?<!\.d)\.ts$/.test(path)) continue
  try {
    compile(pathToFileURL(path))
  } catch {
    // It is no TypeScript yet. The test that imports it says so.
  }
}

/** What Node compiles is kept for the next process, but then it could not tell exactly what has run. */
const isMeasuringCoverage = process.env.NODE_V8_COVERAGE !== undefined
if (!isMeasuringCoverage)
  process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url))

/** Most tests wait for something else most of the time. */
const CONCURRENCY = `--test-concurrency=${2 * availableParallelism()}`

/** Outages, loads, compilers and browsers take long by their nature: they run if they are named, and for coverage. */
const SLOW_TESTS = [
  'test/contract/compression.test.ts',
  'test/contract/middleware.test.ts',
  'test/documents/clients.test.ts',
  'test/documents/dockerfile.test.ts',
  'test/package/runners.test.ts',
  'test/package/typescript.test.ts',
  'test/standalone/cors-browser.test.ts',
  'test/standalone/metrics/prometheus.test.ts',
  'test/standalone/paths/page/actions.test.ts',
  'test/standalone/paths/page/appearance.test.ts',
  'test/standalone/paths/page/interaction.test.ts',
  'test/standalone/paths/page/token.test.ts',
  'test/stores/postgres/deployments/distributed-servers.test.ts',
  'test/stores/postgres/deployments/under-load.test.ts',
]

/** Counting what has run costs more than what these tests hold to a bound. */
const EXCLUDED_FROM_COVERAGE = ['test/hostile/request-cost.test.ts']

const tests = listFiles('test')
  .filter((path) => path.endsWith('.test.ts'))
  .sort()

/** What the folders called peers have installed may have tests of its own. */
function listFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === 'peers' ? [] : listFiles(path)
    return [path]
  })
}

/** The tests that a name means. Node itself passes over names of nothing, or takes a folder for a test. */
function findTests(name) {
  const path = relative('', name).replaceAll(sep, '/')
  return tests.filter((file) => file === path || file.startsWith(`${path}/`))
}

const args = process.argv.slice(2)
const options = args.filter((argument) => argument.startsWith('--'))
const names = args.filter((argument) => !argument.startsWith('--'))
const unknown = names.filter((name) => findTests(name).length === 0)

/** It repeats what failed at its end, so that nobody looks for it in thousands of lines. */
const REPORTER = options.some((option) => option.startsWith('--test-reporter')) ? [] : ['--test-reporter=spec']

if (unknown.length > 0) {
  console.error(`There is no test at ${unknown.join(', ')}. The value of an option is given after "=".`)
  process.exitCode = 2
} else {
  const excluded = isMeasuringCoverage ? EXCLUDED_FROM_COVERAGE : SLOW_TESTS
  const files = names.length > 0 ? new Set(names.flatMap(findTests)) : tests.filter((file) => !excluded.includes(file))
  const runner = [...TYPESCRIPT_FLAGS, CONCURRENCY, ...REPORTER, ...options, '--test', ...files]
  const { status, error } = spawnSync(process.execPath, runner, { stdio: 'inherit' })
  if (error !== undefined) throw error
  process.exitCode = status ?? 1
}
