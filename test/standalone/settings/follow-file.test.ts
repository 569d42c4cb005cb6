import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { followFile } from '../../../src/standalone/settings/follow-file.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import type { Tokens } from '../../../src/standalone/settings/tokens.ts'
import { captureLog, valuesOf, type Events } from '../../support/program/captured-log.ts'
import { TokenSecret } from '../../support/program/rotation-load.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'

/** Here all files stay until the end: they are still followed after their tests, and one that went would be logged. */
const FOLDER = temporaryDirectory({ after })

function makeSecret(content: string): TokenSecret {
  return new TokenSecret(mkdtempSync(join(FOLDER, 'secret-')), content)
}

function tokensOf(entries: string): Tokens | undefined {
  return readSettings({ PLANT_STORE_TOKENS: entries }).tokens
}

suite('a file that is looked at', { timeout: 60_000 }, () => {
  interface Followed {
    readonly applied: Tokens[]
    /** Settles when tokens were applied for the n-th time. */
    readonly change: (n?: number) => Promise<void>
    readonly lookAtOnce: () => void
  }

  function follow(secret: TokenSecret, lookMs = 5, onApply = (): void => undefined): Followed {
    const { tokensFile } = readSettings({ PLANT_STORE_TOKENS_FILE: secret.path })
    const applied: Tokens[] = []
    let tokens = tokensFile!.value.size
    function take(found: Tokens): object {
      applied.push(found)
      onApply()
      return { tokens: (tokens = found.size) }
    }
    const lookAtOnce = followFile(tokensFile!, 'tokens', { take, keep: () => ({ tokens }) }, lookMs)
    return { applied, change: (n = 1) => until(() => applied.length >= n), lookAtOnce }
  }

  /** Settles once another file has been looked at as often as it takes to believe that it has changed. */
  async function otherLooks(): Promise<void> {
    const secret = makeSecret('bob:old')
    const { change } = follow(secret)
    secret.overwrite('bob:new\nbob:newer')
    await change()
  }

  /** The events of a file with one token, without those of {@link otherLooks}. */
  function ownOf(events: Events): Events {
    return events.filter(({ tokens }) => tokens === 1)
  }

  test('is complained of once for each way in which it is wrong, and read once when it changes', async (t) => {
    const events = captureLog(t)
    const secret = makeSecret('ada:old')
    const { change } = follow(secret)
    for (const n of [1, 2]) {
      const before = ownOf(events).length
      secret.overwrite('ada')
      await until(() => ownOf(events).length > before)
      await otherLooks()
      secret.remove()
      await until(() => ownOf(events).length > before + 1)
      await otherLooks()
      secret.overwrite('ada:old')
      await change(n)
      await otherLooks()
    }
    const once = ['tokens-kept', 'tokens-kept', 'tokens-read']
    assert.deepEqual(valuesOf(ownOf(events), 'event'), [...once, ...once])
  })

  test('is not believed while it is being written', async (t) => {
    captureLog(t)
    const secret = makeSecret('ada:old')
    const { applied, change } = follow(secret)
    const over = new AbortController()
    void otherLooks().then(() => over.abort())
    for (let n = 0; !over.signal.aborted; n++) {
      secret.overwrite(`ada:half${n}`)
      await setImmediate()
    }
    assert.deepEqual(applied, [])
    secret.overwrite('ada:whole')
    await change()
    assert.deepEqual(applied, [tokensOf('ada:whole')])
  })

  test('is believed at once, each time someone tells of a change', async (t) => {
    const events = captureLog(t)
    const secret = makeSecret('ada:old')
    const { lookAtOnce } = follow(secret, 60_000)
    secret.overwrite('ada:new')
    lookAtOnce()
    lookAtOnce()
    await until(() => events.length === 2)
    assert.deepEqual(events, [
      { event: 'tokens-read', tokens: 1 },
      { event: 'tokens-read', tokens: 1 },
    ])
  })

  test('is looked at again soon after someone told of a change, who may have done so too early', async (t) => {
    captureLog(t)
    const secret = makeSecret('ada:old')
    const { applied, change, lookAtOnce } = follow(secret, 60_000, () => secret.overwrite('ada:new'))
    lookAtOnce()
    await change(2)
    assert.deepEqual(applied, [tokensOf('ada:old'), tokensOf('ada:new')])
  })

  test('is believed no sooner if a look was due when someone told of a change', async (t) => {
    captureLog(t)
    let [toldFor, believedAfter] = [Infinity, 0]
    // On a busy machine the look may begin before the file is read for whoever told.
    while (toldFor >= 50) {
      const secret = makeSecret('ada:old')
      const startedAt = performance.now()
      let changedAt = 0
      const { change, lookAtOnce } = follow(secret, 50, () => {
        if (changedAt > 0) return
        changedAt = performance.now()
        secret.overwrite('ada:half')
      })
      lookAtOnce()
      await change(2)
      toldFor = changedAt - startedAt
      believedAfter = performance.now() - changedAt
    }
    // One look finds the change, and a second one finds the same.
    assert.ok(believedAfter > 190, `${believedAfter} ms`)
  })

  test('is then looked at as seldom as before', async (t) => {
    captureLog(t)
    const secret = makeSecret('ada:old')
    const { applied, change, lookAtOnce } = follow(secret, 60_000)
    lookAtOnce()
    await change()
    for (let i = 0; i < 3; i++) await otherLooks()
    secret.overwrite('ada:new')
    for (let i = 0; i < 3; i++) await otherLooks()
    assert.equal(applied.length, 1)
  })
})
