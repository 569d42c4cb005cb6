import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzz } from '../support/fuzz/fuzzer.ts'

// Longer, and with other seeds, by hand: npm run fuzz -- --seconds 600 --seed 7
const seconds = Number(process.env['TEST_FUZZ_SECONDS'] ?? 2)

for (const kind of ['plain', 'standalone'] as const) {
  test(`packets change nothing of what a ${kind} server answers and keeps`, async (t) => {
    const { sequences, answers, wakings } = await fuzz(kind, seconds / 2, 1)
    t.diagnostic(`${sequences} sequences`)
    for (const status of [200, 204, 400, 401, 404, 409]) assert.ok(answers.has(status), `no answer ${status}`)
    assert.equal(wakings > 1, kind === 'standalone')
  })
}
