import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { createTokenSource } from '../../../src/standalone/settings/token-rotation.ts'
import { captureLog, valuesOf, type Events } from '../../support/program/captured-log.ts'
import { temporaryFile } from '../../support/temporary-file.ts'

/** The CPU time of the longest round of the event loop until something is in the log, in microseconds. */
async function longestRound(events: Events): Promise<number> {
  let longest = 0
  while (events.length === 0) {
    const before = process.cpuUsage()
    await setImmediate()
    const { user, system } = process.cpuUsage(before)
    longest = Math.max(longest, user + system)
  }
  return longest
}

// `test/simulation/rotation/` has the rest.
suite('at SIGHUP', { timeout: 30_000 }, () => {
  for (const [what, content, tokens] of [
    ['100,000 tokens', Array.from({ length: 100_000 }, (_, i) => `owner${i}:token${i}`).join('\n'), 100_000],
    ['16 MiB of empty lines', `${'\n'.repeat(2 ** 24 - 7)}ada:new`, 1],
  ] as const) {
    test(`${what} are read in short rounds`, async (t) => {
      const events = captureLog(t)
      // It stays until the end: it is followed after its test, and the log would say that it is gone.
      const path = temporaryFile({ after }, 'ada:secret')
      const { tokensFile } = readSettings({ PLANT_STORE_TOKENS_FILE: path })
      const { reread } = createTokenSource(tokensFile!.value, tokensFile)
      writeFileSync(path, content)
      reread()
      const longest = await longestRound(events)
      // In one round it would be more than that.
      assert.ok(longest < 150_000, `${longest} µs`)
      assert.deepEqual(valuesOf(events, 'tokens'), [tokens])
    })
  }

  test('a program without such a file goes on', (t) => {
    const events = captureLog(t)
    const { tokens } = readSettings({ PLANT_STORE_TOKENS: 'ada:secret' })
    const { authenticate, reread } = createTokenSource(tokens!, undefined)
    reread()
    assert.deepEqual(events, [{ event: 'tokens-kept', tokens: 1, reason: 'They come from no file.' }])
    assert.deepEqual(authenticate('secret'), { owner: 'ada', access: 'write' })
  })
})
