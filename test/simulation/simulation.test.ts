import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withFault } from './faults.ts'
import { parts } from './parts.ts'

const RUN = fileURLToPath(new URL('run.ts', import.meta.url))

// In processes of their own: node:test follows each promise, which takes as long as the promises themselves.
suite('a thousand orders of events break no rule of', { concurrency: true }, () => {
  for (const { name } of parts) {
    test(name, async () => {
      await promisify(execFile)(process.execPath, [...process.execArgv, RUN, name])
    })
  }
})

for (const part of parts) {
  test(`each fault of ${part.name} changes the source`, () => {
    for (const [file, faults] of Object.entries(part.faults)) for (const fault of faults) withFault(file, fault)
  })
}
