// Runs the tests: all of them, or those of the files, folders and patterns that are named. Options go to the test runner
// of Node: npm test -- test/plants 'test/**/*-store.test.ts' --test-name-pattern=limit
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('../..', import.meta.url)))

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
  const files = names.length === 0 ? tests : [...new Set(names.flatMap(testsOf))]
  const { status, error } = spawnSync(process.execPath, ['--import', 'tsx', ...options, '--test', ...files], {
    stdio: 'inherit',
  })
  if (error !== undefined) throw error
  process.exitCode = status ?? 1
}
