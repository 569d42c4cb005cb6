// Runs the tests in the given files and folders, or by default all tests except the slow ones. Options are passed to
// Node: npm test -- test/plants test/http/body.test.ts --test-name-pattern=limit
// With --test-reporter=spec, Node's own test runner and reporter are used.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { selectEnvironment } from './environment.js'
import { describePrograms } from './installed-programs.js'
import { Progress } from './progress.js'
import { runFiles } from './run-files.js'
import { compile } from './typescript-hooks.js'

process.chdir(fileURLToPath(new URL('../..', import.meta.url)))

const TYPESCRIPT_FLAGS = ['--import', import.meta.resolve('./typescript.js')]

// Node's warning that stripping types is experimental helps nobody who runs the tests.
process.removeAllListeners('warning')

// Compiles all files once, so that the test processes don't have to.
for (const path of ['src', 'test', 'bench'].flatMap(listFiles)) {
  if (!/(?<!\.d)\.ts$/.test(path)) continue
  try {
    compile(pathToFileURL(path))
  } catch {
    // The file has a syntax error. The test that imports it will report that.
  }
}

/** V8 coverage isn't exact for code from Node's compile cache, so the cache is disabled while coverage is measured. */
const isMeasuringCoverage = process.env.NODE_V8_COVERAGE !== undefined
if (!isMeasuringCoverage)
  process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url))

/** More processes than cores, because most tests spend most of their time waiting. */
const DEFAULT_CONCURRENCY = 2 * availableParallelism()

/** How long a test file may take, in seconds. The slowest one takes less than a tenth of it on an idle machine. */
const LIMIT_SECONDS = Number(process.env.TEST_FILE_SECONDS ?? 300)

/** Slow tests with outages, load, compilers or browsers. They run only if they are named, or for coverage. */
const SLOW_TESTS = [
  'test/client/million-plants.test.ts',
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

/** Tests that limit CPU time, which collecting coverage would exceed. */
const EXCLUDED_FROM_COVERAGE = ['test/hostile/request-cost.test.ts']

const tests = listFiles('test')
  .filter((path) => path.endsWith('.test.ts'))
  .sort()

/** Returns all files in a folder, except in folders of installed packages, which may contain their own tests. */
function listFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return ['peers', 'tools'].includes(entry.name) ? [] : listFiles(path)
    return [path]
  })
}

/**
 * Returns the tests for the path of a file or folder. Node itself ignores missing files and runs a folder as a test.
 */
function findTests(name) {
  const path = relative('', name).replaceAll(sep, '/')
  return tests.filter((file) => file === path || file.startsWith(`${path}/`))
}

const args = process.argv.slice(2)
const options = args.filter((argument) => argument.startsWith('--'))
const names = args.filter((argument) => !argument.startsWith('--'))
const unknown = names.filter((name) => findTests(name).length === 0)

const CONCURRENCY = /^--test-concurrency=(.*)$/
const concurrency = Number(options.map((option) => CONCURRENCY.exec(option)?.[1]).find(Boolean) ?? DEFAULT_CONCURRENCY)

if (unknown.length > 0) {
  console.error(`No tests found at ${unknown.join(', ')}. Write the value of an option after "=".`)
  process.exitCode = 2
} else {
  const excluded = isMeasuringCoverage ? EXCLUDED_FROM_COVERAGE : SLOW_TESTS
  const files =
    names.length > 0
      ? tests.filter((file) => names.some((name) => findTests(name).includes(file)))
      : tests.filter((file) => !excluded.includes(file))
  if (options.some((option) => option.startsWith('--test-reporter'))) {
    const nodeArgs = [...TYPESCRIPT_FLAGS, `--test-concurrency=${concurrency}`, ...options, '--test', ...files]
    const { status } = spawnSync(process.execPath, nodeArgs, { stdio: 'inherit', env: selectEnvironment(process.env) })
    process.exitCode = status ?? 1
  } else {
    console.log(describePrograms())
    const nodeArgs = [...TYPESCRIPT_FLAGS, ...options.filter((option) => !CONCURRENCY.test(option))]
    const progress = new Progress(files.length)
    await runFiles(files, { nodeArgs, concurrency, limitSeconds: LIMIT_SECONDS, progress })
    process.exitCode = progress.finish() ? 0 : 1
  }
}
