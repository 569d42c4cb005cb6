import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { after, suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Caller } from '../../../src/http/caller.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { createTokenSource } from '../../../src/standalone/settings/token-rotation.ts'
import { captureLog, valuesOf, type Events } from '../../support/program/captured-log.ts'
import { TokenSecret } from '../../support/program/rotation-load.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'

/** Here all files stay until the end: they are still followed after their tests, and one that went would be logged. */
const FOLDER = temporaryDirectory({ after })

function makeSecret(content: string): TokenSecret {
  return new TokenSecret(mkdtempSync(join(FOLDER, 'secret-')), content)
}

/** The CPU time of the longest round of the event loop until something settles, in microseconds. */
async function longestRound(work: Promise<void>): Promise<number> {
  const done = new AbortController()
  void work.finally(() => done.abort())
  let longest = 0
  while (!done.signal.aborted) {
    const before = process.cpuUsage()
    await setImmediate()
    const { user, system } = process.cpuUsage(before)
    longest = Math.max(longest, user + system)
  }
  return longest
}

suite('at SIGHUP', { timeout: 60_000 }, () => {
  interface Source {
    readonly events: Events
    /** Finds the caller of a token. */
    readonly find: (token: string) => Caller | undefined
    /** Has the file read again, and settles with the next event of the log. */
    readonly signal: () => Promise<void>
  }

  function makeSource(t: TestContext, secret?: TokenSecret): Source {
    const events = captureLog(t)
    const file = secret && { PLANT_STORE_TOKENS_FILE: secret.path }
    const { tokens, tokensFile } = readSettings(file ?? { PLANT_STORE_TOKENS: 'ada:secret' })
    const source = createTokenSource(tokens ?? tokensFile!.value, tokensFile)
    async function signal(): Promise<void> {
      const before = events.length
      source.reread()
      await until(() => events.length > before)
    }
    return { events, find: source.authenticate, signal }
  }

  test('new tokens hold, removed ones are refused, and the log counts them', async (t) => {
    const secret = makeSecret('ada:old\nada:same\nbob:reader\nbob:moved\n')
    const { events, find, signal } = makeSource(t, secret)
    secret.swap('ada:new\nada:same\nbob:reader read\neve:moved\nbob:other\n')
    await signal()
    secret.overwrite('ada:new\n')
    await signal()
    assert.deepEqual(events, [
      { event: 'tokens-read', tokens: 5, added: 2, removed: 1, changed: 2 },
      { event: 'tokens-read', tokens: 1, added: 0, removed: 4, changed: 0 },
    ])
    assert.deepEqual(
      ['old', 'new', 'same'].map((token) => find(token)),
      [undefined, { owner: 'ada', access: 'write' }, undefined],
    )
  })

  test('a file that has not changed is acknowledged too', async (t) => {
    const { events, signal } = makeSource(t, makeSecret('ada:secret'))
    await signal()
    assert.deepEqual(events, [{ event: 'tokens-read', tokens: 1, added: 0, removed: 0, changed: 0 }])
  })

  const rows: readonly [what: string, change: (secret: TokenSecret) => void, reason: RegExp][] = [
    [
      'missing',
      (secret) => secret.remove(),
      /^PLANT_STORE_TOKENS_FILE takes a file that can be read, and this one cannot \(ENOENT\)$/,
    ],
    [
      'empty',
      (secret) => secret.overwrite(''),
      /^PLANT_STORE_TOKENS_FILE takes at least one owner:token; there is none$/,
    ],
    ['wrong', (secret) => secret.overwrite('ada:new\nada new\n'), /; line 2 is not of that form$/],
  ]
  for (const [what, change, reason] of rows) {
    test(`the last good tokens hold if the file is ${what}, and the log says why each time`, async (t) => {
      const secret = makeSecret('ada:secret')
      const { events, find, signal } = makeSource(t, secret)
      change(secret)
      await signal()
      await signal()
      for (const { event, tokens, reason: logged } of events) {
        assert.deepEqual([event, tokens], ['tokens-kept', 1])
        assert.match(String(logged), reason)
      }
      assert.equal(events.length, 2)
      assert.doesNotMatch(JSON.stringify(events), /secret|new/)
      assert.deepEqual([find('secret'), find('new')], [{ owner: 'ada', access: 'write' }, undefined])
    })
  }

  test('the last good tokens hold if the file lacks the newline at its end that the last good one had', async (t) => {
    const secret = makeSecret('ada:secret read\n')
    const { events, find, signal } = makeSource(t, secret)
    secret.overwrite('ada:secret')
    await signal()
    const reason =
      'PLANT_STORE_TOKENS_FILE takes a file that ends with a newline, as it did before: it may be half written'
    assert.deepEqual(events, [{ event: 'tokens-kept', tokens: 1, reason }])
    assert.deepEqual(find('secret'), { owner: 'ada', access: 'read' })

    secret.overwrite('ada:secret\n')
    await signal()
    assert.deepEqual(find('secret'), { owner: 'ada', access: 'write' })
  })

  for (const [what, content, tokens] of [
    ['100,000 tokens', Array.from({ length: 100_000 }, (_, i) => `owner${i}:token${i}`).join('\n'), 100_000],
    ['16 MiB of empty lines', `${'\n'.repeat(2 ** 24 - 7)}ada:new`, 1],
  ] as const) {
    test(`${what} are read in short rounds`, async (t) => {
      const secret = makeSecret('ada:secret')
      const { events, signal } = makeSource(t, secret)
      secret.overwrite(content)
      const longest = longestRound(signal())
      // In one round it would be more than that.
      assert.ok((await longest) < 150_000, `${await longest} µs`)
      assert.deepEqual(valuesOf(events, 'tokens'), [tokens])
    })
  }

  test('a program without such a file goes on', async (t) => {
    const { events, find, signal } = makeSource(t)
    await signal()
    assert.deepEqual(events, [{ event: 'tokens-kept', tokens: 1, reason: 'They come from no file.' }])
    assert.deepEqual(find('secret'), { owner: 'ada', access: 'write' })
  })
})
