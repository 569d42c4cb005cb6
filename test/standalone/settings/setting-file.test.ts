import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createTokenSource } from '../../../src/standalone/settings/rotation.ts'
import { readSettingFile, rereadSettingFile } from '../../../src/standalone/settings/setting-file.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { SettingError } from '../../../src/standalone/settings/variables.ts'
import { cpuTimeSince } from '../../support/cpu-time.ts'
import { captureLog, valuesOf } from '../../support/program/captured-log.ts'
import { startProgram } from '../../support/program/program.ts'
import { temporaryDirectory, temporaryFile } from '../../support/temporary-file.ts'

const MAX_BYTES = 16 * 2 ** 20

function fileOf(t: TestContext, bytes: number): string {
  const path = temporaryFile(t, '')
  truncateSync(path, bytes)
  return path
}

function makeFifo(t: TestContext): string {
  const path = join(temporaryDirectory(t), 'fifo')
  execFileSync('mkfifo', [path])
  return path
}

function linkTo(t: TestContext, target: string): string {
  const path = join(temporaryDirectory(t), 'link')
  symlinkSync(target, path)
  return path
}

for (const [when, read] of [
  ['at the start', (path: string) => Promise.resolve(path).then((path) => readSettingFile('FILE', path).bytes)],
  ['again', (path: string) => rereadSettingFile('FILE', path)],
] as const) {
  suite(`a file that a setting names, as it is read ${when},`, { timeout: 60_000 }, () => {
    test('may be a link', async (t) => {
      assert.equal((await read(linkTo(t, temporaryFile(t, 'ada:secret')))).toString(), 'ada:secret')
    })

    test('may have 16 MiB, or nothing', async (t) => {
      for (const bytes of [MAX_BYTES, 0]) assert.equal((await read(fileOf(t, bytes))).length, bytes)
    })

    const neither = 'takes a regular file, or a link to one, and this is neither'
    const rows: readonly [what: string, make: (t: TestContext) => string, problem: string][] = [
      ['more', (t) => fileOf(t, MAX_BYTES + 1), 'takes a file of at most 16 MiB, and this one has more'],
      ['no name', () => '/nowhere/file', 'takes a file that can be read, and this one cannot (ENOENT)'],
      ['a writer that it waits for', makeFifo, neither],
      ['no end', () => '/dev/zero', neither],
      ['a link to such a file', (t) => linkTo(t, devNull), neither],
      ['files in it', temporaryDirectory, neither],
    ]
    for (const [what, make, problem] of rows) {
      test(`may not have ${what}`, async (t) => {
        const path = make(t)
        await assert.rejects(read(path), new SettingError('FILE', problem))
      })
    }

    // The kernel makes up what such a file holds, and gives it no size.
    test('is not read beyond its size', { skip: process.platform !== 'linux' }, async () => {
      assert.equal((await read('/proc/self/pagemap')).length, 0)
    })
  })
}

suite('a settings file that other users', { skip: process.platform === 'win32' }, () => {
  for (const [mode, access] of [
    [0o644, 'read'],
    [0o602, 'write'],
    [0o666, 'read and write'],
    [0o660, undefined],
  ] as const) {
    test(`can ${access ?? 'neither read nor write'} is reported ${access ? 'once' : 'never'}`, async (t) => {
      const [tokens, url] = [temporaryFile(t, 'ada:secret\n'), temporaryFile(t, 'memory:')]
      for (const path of [tokens, url]) chmodSync(path, mode)
      const program = await startProgram(t, { PLANT_STORE_TOKENS_FILE: tokens, PLANT_STORE_URL_FILE: url })
      program.child.kill('SIGHUP')
      await program.logged('store-url-read')
      await program.end()
      const events = program.stderr.all.map((line) => JSON.parse(line) as Record<string, unknown>)
      const warnings = events.filter(({ event }) => event === 'warning').map(({ level, reason }) => [level, reason])
      const reasons = [
        `PLANT_STORE_TOKENS_FILE: other users can ${access} ${tokens} (mode ${mode.toString(8)})`,
        `PLANT_STORE_URL_FILE: other users can ${access} ${url} (mode ${mode.toString(8)})`,
      ]
      assert.deepEqual(warnings, access === undefined ? [] : reasons.map((reason) => ['warn', reason]))
    })
  }
})

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
