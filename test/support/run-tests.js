// Runs the tests in the given files and folders, or by default all but the slow ones. Slow tests, in files named
// *.slow.ts, need compilers, browsers, load or minutes. They run if their file or "slow" is named.
// Options are passed to Node: npm test -- test/http test/package/next.slow.ts --test-name-pattern=limit
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import './environment.js'
import { describePrograms } from './installed-programs.js'
import { Progress } from './progress.js'
import { runFiles } from './run-files.js'
import { bundleServer } from './server-bundle.js'

process.chdir(fileURLToPath(new URL('../..', import.meta.url)))

/** Node 22.18 and later strip types themselves. Some of these versions warn that this is experimental. */
const TYPESCRIPT_FLAGS = process.features.typescript
  ? ['--disable-warning=ExperimentalWarning']
  : ['--import', import.meta.resolve('tsx')]

/** V8 coverage isn't exact for code from Node's compile cache, so the cache is disabled while coverage is measured. */
const isMeasuringCoverage = process.env.NODE_V8_COVERAGE !== undefined
if (!isMeasuringCoverage) process.env.NODE_COMPILE_CACHE = join(process.cwd(), 'node_modules/.cache/node')

/** How long a process may take, in seconds. The slowest one takes less than a tenth of it on an idle machine. */
const LIMIT_SECONDS = Number(process.env.TEST_FILE_SECONDS ?? 300)

/** A process per file would be the largest cost, so the files of a folder share processes, up to this many files each. */
const FILES_PER_PROCESS = 8

/** Tests in these folders start processes and databases and wait for timeouts. The last folder takes the longest. */
const SLOWEST_FOLDERS = ['contract', 'hostile', 'package', 'standalone', 'stores'].map((name) => `test/${name}`)

/** Files that need their own process, for example because they measure CPU time or memory. */
const ALONE = /\.slow\.ts$|\/run-files\.test\.ts$/

const allFiles = listFiles('test').sort()
const tests = allFiles.filter((path) => path.endsWith('.test.ts'))
const slowTests = allFiles.filter((path) => path.endsWith('.slow.ts'))

/** Returns all files in a folder, except in folders of installed packages, which may contain their own tests. */
function listFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return ['test/peers', 'test/tools'].includes(path) ? [] : listFiles(path)
    return [path]
  })
}

/** Returns the tests for "slow", or for the path of a file or folder. */
function findTests(name) {
  if (name === 'slow') return slowTests
  const path = relative('', name).replaceAll(sep, '/')
  return slowTests.includes(path) ? [path] : tests.filter((file) => file === path || file.startsWith(`${path}/`))
}

/** Returns whether a test file, or a table of test cases that it imports, contains text that matches. */
function contains(file, pattern) {
  const text = readFileSync(file, 'utf8')
  const imports = [...text.matchAll(/^import .* from '(\.\/.*)'$/gm)].map(([, path]) => join(dirname(file), path))
  return pattern.test(text) || imports.some((path) => allFiles.includes(path) && contains(path, pattern))
}

/** Names of tests can be composed. If no file contains the pattern, any file may contain the test. */
function selectByPattern(files, pattern) {
  const matches = files.filter((file) => contains(file, new RegExp(pattern)))
  return matches.length > 0 ? matches : files
}

/** Distributes files among processes. The groups that take the longest come first. */
function groupFiles(files) {
  const shared = files.filter((file) => !ALONE.test(file))
  const groups = [...new Set(shared.map(dirname))].flatMap((folder) => {
    const inFolder = shared.filter((file) => dirname(file) === folder)
    const count = Math.ceil(inFolder.length / FILES_PER_PROCESS)
    return Array.from({ length: count }, (_, n) => inFolder.filter((_, index) => index % count === n))
  })
  const alone = files.filter((file) => ALONE.test(file)).map((file) => [file])
  const rank = ([file]) => SLOWEST_FOLDERS.indexOf(dirname(file))
  return [
    ...alone.filter(([file]) => slowTests.includes(file)),
    ...groups.sort((a, b) => rank(b) - rank(a)),
    ...alone.filter(([file]) => !slowTests.includes(file)),
  ]
}

const args = process.argv.slice(2)
const options = args.filter((argument) => argument.startsWith('--'))
const names = args.filter((argument) => !argument.startsWith('--'))
const unknown = names.filter((name) => findTests(name).length === 0)
const findOption = (name) => options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1)

if (unknown.length > 0) {
  console.error(`No tests found at ${unknown.join(', ')}. Write options with "=", as in --test-name-pattern=limit.`)
  process.exitCode = 2
} else {
  console.log(describePrograms())
  const named = names.length > 0 ? [...new Set(names.flatMap(findTests))].sort() : tests
  const pattern = findOption('--test-name-pattern')
  const files = pattern === undefined ? named : selectByPattern(named, pattern)
  const startsServer = files.some((file) => contains(file, /standalone-server\.ts'/))
  if (startsServer && !process.features.typescript && !isMeasuringCoverage) process.env.TEST_SERVER = bundleServer()
  const progress = new Progress(files.length)
  await runFiles(groupFiles(files), {
    nodeArgs: [...TYPESCRIPT_FLAGS, ...options],
    // More processes than cores, because most tests spend most of their time waiting.
    concurrency: 2 * availableParallelism(),
    limitSeconds: LIMIT_SECONDS,
    progress,
  })
  process.exitCode = progress.finish() ? 0 : 1
}
