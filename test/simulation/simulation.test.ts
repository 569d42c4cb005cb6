import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { applyMutant } from './mutants.ts'
import { systems } from './systems.ts'

const RUN_SCRIPT = fileURLToPath(new URL('run.ts', import.meta.url))

// In processes of their own: node:test follows each promise, which takes as long as the promises themselves.
suite('a thousand orders of events break no rule of', { concurrency: true }, () => {
  for (const { name } of systems) {
    test(name, async () => {
      await promisify(execFile)(process.execPath, [...process.execArgv, RUN_SCRIPT, name])
    })
  }
})

for (const system of systems) {
  test(`each fault of ${system.name} changes the source`, () => {
    for (const [file, mutants] of Object.entries(system.mutants))
      for (const mutant of mutants) applyMutant(file, mutant)
  })
}
