import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runWithFault } from '../../support/database/histories/faults.ts'
import { withoutTrace } from '../../support/requirements.ts'
import { skip } from '../../support/database/sqlite-file.ts'

// `npm run faults` does this at every call, with every fault.
suite('answers are true after a restart', { skip: skip || withoutTrace }, () => {
  for (const [calls, fault, ns, leaves] of [
    ['fsync,fdatasync', 'EIO', [9, 14, 21], 'acknowledged'],
    ['fsync,fdatasync', 'EIO+', [14], 'unknown'],
    ['pwrite64', 'EIO', [60, 114], 'acknowledged'],
    ['pwrite64', 'EIO+', [60], 'unknown'],
    ['pwrite64', 'ENOSPC', [60, 114], 'acknowledged'],
    ['pwrite64', 'ENOSPC+', [60], 'refused'],
    ['pwrite64', 'kill', [60, 114], 'acknowledged'],
  ] as const) {
    for (const n of ns) {
      test(`with ${fault} at call ${n} of ${calls}`, async () => {
        const outcome = await runWithFault(calls, fault, n)
        assert.deepEqual(outcome.problems, [])
        assert.equal(outcome.isHit, true)
        assert.ok(outcome[leaves] > 0)
      })
    }
  }
})
