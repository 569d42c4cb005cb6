import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { createTokenSource } from '../../../src/standalone/settings/rotation.ts'
import { cpuTimeSince } from '../../support/cpu-time.ts'
import { captureLog, valuesOf } from '../../support/program/captured-log.ts'
import { startProgram } from '../../support/program/program.ts'
import { temporaryFile } from '../../support/temporary-file.ts'

// `test/simulation/rotation/` has the rest.
suite('at SIGHUP', { timeout: 60_000 }, () => {
  test('the program reads its file of tokens again', async (t) => {
    const path = temporaryFile(t, 'ada:old\n')
    const program = await startProgram(t, { PLANT_STORE_TOKENS_FILE: path })
    // Of a file that has not changed only a signal has the log say anything.
    program.child.kill('SIGHUP')
    await program.logged('tokens-read')
    writeFileSync(path, 'ada:new\n')
    program.child.kill('SIGHUP')
    await program.logged('tokens-read', 2)
    const statuses = ['new', 'old'].map(async (token) => (await program.fetch('/plants', {}, token)).status)
    assert.deepEqual(await Promise.all(statuses), [200, 401])
  })

  test('a program without a file of tokens goes on', (t) => {
    const events = captureLog(t)
    const { tokens } = readSettings({ PLANT_STORE_TOKENS: 'ada:secret' })
    const { authenticate, reread } = createTokenSource(tokens!, undefined)
    reread()
    assert.deepEqual(events, [{ event: 'tokens-kept', tokens: 1, reason: 'They come from no file.' }])
    assert.deepEqual(authenticate('secret'), { owner: 'ada', access: 'write' })
  })

  // The file is followed after its test, and the log may say that it is gone.
  test('100,000 tokens are read in short rounds', async (t) => {
    const events = captureLog(t)
    const path = temporaryFile(t, 'ada:secret')
    const { tokensFile } = readSettings({ PLANT_STORE_TOKENS_FILE: path })
    const { reread } = createTokenSource(tokensFile!.value, tokensFile)
    writeFileSync(path, Array.from({ length: 100_000 }, (_, i) => `owner${i}:token${i}`).join('\n'))
    const start = process.cpuUsage()
    reread()
    let longest = 0
    while (events.length === 0) {
      const before = process.cpuUsage()
      await setImmediate()
      longest = Math.max(longest, cpuTimeSince(before))
    }
    const whole = cpuTimeSince(start)
    assert.ok(longest < whole / 3, `a round took ${longest} of ${whole} µs`)
    assert.deepEqual(valuesOf(events, 'tokens'), [100_000])
  })
})
