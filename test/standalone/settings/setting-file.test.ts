import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { symlinkSync, truncateSync } from 'node:fs'
import { devNull } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { readSettingFile, rereadSettingFile } from '../../../src/standalone/settings/setting-file.ts'
import { SettingError } from '../../../src/standalone/settings/variables.ts'
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
  ['at the start', (path: string) => Promise.resolve(path).then((path) => readSettingFile('FILE', path))],
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
