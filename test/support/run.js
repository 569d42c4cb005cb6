// Runs the tests: all of them, or the files that are named. What begins with "--" goes to Node's test runner.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const tests = fileURLToPath(new URL('..', import.meta.url))

function allTests() {
  return readdirSync(tests, { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join(relative('', tests), file))
    .sort()
}

const options = process.argv.slice(2).filter((argument) => argument.startsWith('--'))
const files = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))

const { status, error } = spawnSync(
  process.execPath,
  ['--import', 'tsx', ...options, '--test', ...(files.length > 0 ? files : allTests())],
  { stdio: 'inherit' },
)
if (error !== undefined) throw error
process.exitCode = status ?? 1
