import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { applyMutant } from './mutants.ts'
import { systems } from './systems.ts'

const RUN_SCRIPT = fileURLToPath(new URL('run.ts', import.meta.url))

// Each simulation runs in a child process, because node:test's async hooks would double the cost of promises.
suite('a simulation with 1,000 seeds', { concurrency: true }, () => {
  for (const { name } of systems) {
    test(`finds no violation of the model in ${name}`, async () => {
      await promisify(execFile)(process.execPath, [...process.execArgv, RUN_SCRIPT, name])
    })
  }
})

for (const system of systems) {
  test(`every mutant of ${system.name} changes the source`, () => {
    for (const [file, mutants] of Object.entries(system.mutants))
      for (const mutant of mutants) applyMutant(file, mutant)
  })
}
