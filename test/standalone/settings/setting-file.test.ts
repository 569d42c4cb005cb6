import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createTokenSource } from '../../../src/standalone/settings/reload.ts'
import { readSettingFile, rereadSettingFile } from '../../../src/standalone/settings/setting-file.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { SettingError } from '../../../src/standalone/settings/variables.ts'
import { cpuTimeSince } from '../../support/cpu-time.ts'
import { captureLog, getValues } from '../../support/program/capture-log.ts'
import { startProgram } from '../../support/program/program.ts'
import { createTempDirectory, createTempFile } from '../../support/temp-files.ts'

const MAX_BYTES = 16 * 2 ** 20

function createFileOfSize(t: TestContext, bytes: number): string {
  const path = createTempFile(t, '')
  truncateSync(path, bytes)
  return path
}

function makeFifo(t: TestContext): string {
  const path = join(createTempDirectory(t), 'fifo')
  execFileSync('mkfifo', [path])
  return path
}

function linkTo(t: TestContext, target: string): string {
  const path = join(createTempDirectory(t), 'link')
  symlinkSync(target, path)
  return path
}

for (const [when, read] of [
  ['at startup', (path: string) => Promise.resolve(path).then((path) => readSettingFile('FILE', path).bytes)],
  ['on a reload', (path: string) => rereadSettingFile('FILE', path)],
] as const) {
  suite(`settings files ${when}`, { timeout: 60_000 }, () => {
    test('a settings file can be a symbolic link', async (t) => {
      assert.equal((await read(linkTo(t, createTempFile(t, 'ada:secret')))).toString(), 'ada:secret')
    })

    test('a settings file can be empty, or as large as 16 MiB', async (t) => {
      for (const bytes of [MAX_BYTES, 0]) assert.equal((await read(createFileOfSize(t, bytes))).length, bytes)
    })

    const neither = ' must be the path of a regular file or of a link to one'
    const rows: readonly [what: string, make: (t: TestContext) => string, problem: string][] = [
      ['is larger than 16 MiB', (t) => createFileOfSize(t, MAX_BYTES + 1), ': the file must not be larger than 16 MiB'],
      ['does not exist', () => '/nowhere/file', ': the file cannot be read (ENOENT)'],
      ['is a FIFO', makeFifo, neither],
      ['is a device', () => '/dev/zero', neither],
      ['is a symbolic link to a device', (t) => linkTo(t, devNull), neither],
      ['is a folder', createTempDirectory, neither],
    ]
    for (const [what, make, problem] of rows) {
      test(`a settings file is rejected if it ${what}`, async (t) => {
        const path = make(t)
        await assert.rejects(read(path), new SettingError(`FILE${problem}`))
      })
    }

    // The kernel generates the content of such files, and reports a size of 0.
    test(
      'a settings file is not read beyond its reported size, even if the size is 0',
      { skip: process.platform !== 'linux' },
      async () => {
        assert.equal((await read('/proc/self/pagemap')).length, 0)
      },
    )
  })
}

suite('permissions of a settings file', { skip: process.platform === 'win32' }, () => {
  for (const [mode, access] of [
    [0o644, 'read'],
    [0o602, 'write'],
    [0o666, 'read and write'],
    [0o660, undefined],
  ] as const) {
    test(`a file that other users can ${access ?? 'neither read nor write'} causes ${access ? 'a single warning' : 'no warning'}`, async (t) => {
      const [tokens, url] = [createTempFile(t, 'ada:secret\n'), createTempFile(t, 'memory:')]
      for (const path of [tokens, url]) chmodSync(path, mode)
      const program = await startProgram(t, { PLANT_STORE_TOKENS_FILE: tokens, PLANT_STORE_URL_FILE: url })
      program.child.kill('SIGHUP')
      await program.waitForLogEvent('store-url-read')
      await program.stop()
      const events = program.stderr.lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      const warnings = events.filter(({ event }) => event === 'warning').map(({ level, reason }) => [level, reason])
      const reasons = [
        `PLANT_STORE_TOKENS_FILE: other users can ${access} ${tokens} (mode ${mode.toString(8)})`,
        `PLANT_STORE_URL_FILE: other users can ${access} ${url} (mode ${mode.toString(8)})`,
      ]
      assert.deepEqual(warnings, access === undefined ? [] : reasons.map((reason) => ['warn', reason]))
    })
  }
})

// The other cases are in `test/simulation/reload/`.
suite('on SIGHUP', { timeout: 60_000 }, () => {
  test('the standalone server reloads its token file', async (t) => {
    const path = createTempFile(t, 'ada:old\n')
    const program = await startProgram(t, { PLANT_STORE_TOKENS_FILE: path })
    // For an unchanged file, only the signal is logged.
    program.child.kill('SIGHUP')
    await program.waitForLogEvent('tokens-read')
    writeFileSync(path, 'ada:new\n')
    program.child.kill('SIGHUP')
    await program.waitForLogEvent('tokens-read', 2)
    const statuses = ['new', 'old'].map(async (token) => (await program.fetch('/plants', {}, token)).status)
    assert.deepEqual(await Promise.all(statuses), [200, 401])
  })

  test('the standalone server logs that it has no token file to reload', (t) => {
    const events = captureLog(t)
    const { tokens } = readSettings({ PLANT_STORE_TOKENS: 'ada:secret' })
    const { authenticate, reload: reread } = createTokenSource(tokens!, undefined)
    reread()
    assert.deepEqual(events, [
      { event: 'tokens-kept', tokens: 1, reason: 'PLANT_STORE_TOKENS_FILE is not set, so there is no file to reread' },
    ])
    assert.deepEqual(authenticate('secret'), { owner: 'ada', access: 'write' })
  })

  // The server still watches the file after the test has deleted it, and may log that.
  test('the standalone server spreads the parsing of 100,000 tokens over many event-loop ticks', async (t) => {
    const events = captureLog(t)
    const path = createTempFile(t, 'ada:secret')
    const { tokensFile } = readSettings({ PLANT_STORE_TOKENS_FILE: path })
    const { reload: reread } = createTokenSource(tokensFile!.value, tokensFile)
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
    assert.ok(longest < whole / 3, `a tick took ${longest} of ${whole} µs`)
    assert.deepEqual(getValues(events, 'tokens'), [100_000])
  })
})
