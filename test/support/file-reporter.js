// The reporter of each test process. It writes one JSON line per result, which run-files.js reads.
import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import { inspect } from 'node:util'

const { TEST_RESULTS } = process.env

/** Node 20 reports tests that don't match --test-name-pattern as skipped. */
const NOT_SELECTED = 'test name does not match pattern'

export default async function* report(source) {
  /** The names of the current test and the suites that contain it. */
  const names = []
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      names[data.nesting] = data.name
      names.length = data.nesting + 1
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const name = `${toPath(data.file)}${[...names.slice(0, data.nesting), data.name].join(' > ')}`
    const result = toResult(type, name, data)
    if (result !== undefined) appendFileSync(TEST_RESULTS, `${JSON.stringify(result)}\n`)
  }
  yield ''
}

function toPath(file) {
  return file === undefined ? '' : `${relative('', file)}: `
}

function toResult(type, name, { skip, todo, details }) {
  if (skip !== undefined) return skip === NOT_SELECTED ? undefined : { outcome: 'skipped', name, reason: skip }
  if (type === 'test:pass' || todo !== undefined) {
    return details.type === 'suite' ? undefined : { outcome: 'passed', name }
  }
  const { error } = details
  // The subtest has its own result.
  if (error.failureType === 'subtestsFailed') return undefined
  return { outcome: 'failed', name, message: inspect(error.cause ?? error, { colors: false }) }
}
