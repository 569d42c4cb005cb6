import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withFault } from './faults.ts'
import { parts } from './parts.ts'
import { findFault } from './simulation.ts'

for (const part of parts) {
  test(`a thousand orders of events break no rule of ${part.name}`, async () => {
    for (let seed = 1; seed <= 1000; seed++) assert.equal(await findFault(part, seed), undefined)
  })

  test(`each fault of ${part.name} changes the source`, () => {
    for (const [file, faults] of Object.entries(part.faults)) for (const fault of faults) withFault(file, fault)
  })
}
