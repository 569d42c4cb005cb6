import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, suite, test, type TestContext } from 'node:test'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { followStoreUrl } from '../../../src/standalone/settings/store-url.ts'
import { captureLog, type Events } from '../../support/program/captured-log.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'

/** Each file stays until the end: it is looked at once more after its test. */
const FOLDER = temporaryDirectory({ after })

const URL = 'postgres://ada:old@host/plants?sslmode=require'

suite('the URL of the store, read again', () => {
  const restart = 'More than the password has changed, which takes a restart.'
  const rows: [name: string, found: string, holds: string, event: object][] = [
    ['as it was', URL, URL, { event: 'store-url-read', changed: false }],
    [
      'with another password',
      'postgres://ada:n%65w@host/plants?sslmode=require',
      'postgres://ada:n%65w@host/plants?sslmode=require',
      { event: 'store-url-read', changed: true },
    ],
    [
      'without a password',
      'postgres://ada@host/plants?sslmode=require',
      'postgres://ada@host/plants?sslmode=require',
      { event: 'store-url-read', changed: true },
    ],
    ...[
      'postgres://eve:old@host/plants?sslmode=require',
      'postgres://ada:old@other/plants?sslmode=require',
      'postgres://ada:old@host:5433/plants?sslmode=require',
      'postgres://ada:old@host/other?sslmode=require',
      'postgres://ada:old@host/plants',
      'memory:',
    ].map((found): (typeof rows)[number] => [found, found, URL, { event: 'store-url-kept', reason: restart }]),
  ]
  /** Follows a file with the URL, and rereads it with something else in it. */
  async function follow(t: TestContext, found: string): Promise<{ readonly url: string; readonly events: Events }> {
    const events = captureLog(t)
    const path = join(mkdtempSync(join(FOLDER, 'url-')), 'url')
    writeFileSync(path, URL)
    const { storeUrl, storeUrlFile } = readSettings({ PLANT_STORE_URL_FILE: path })
    const { current, reread } = followStoreUrl(storeUrl, storeUrlFile)
    writeFileSync(path, found)
    reread()
    await until(() => events.length > 0)
    return { url: current(), events }
  }

  for (const [name, found, holds, event] of rows) {
    test(name, async (t) => {
      assert.deepEqual(await follow(t, found), { url: holds, events: [event] })
    })
  }

  test('is kept if it is malformed, and the log says nothing of it', async (t) => {
    const { url, events } = await follow(t, 'postgres://ada:se/cret@host/plants')
    assert.equal(url, URL)
    assert.match(String(events[0]!['reason']), /^takes postgres:\/\/user:password@host\/database; write/)
  })

  test('is kept if the file holds no URL', async (t) => {
    const { url, events } = await follow(t, 'ada')
    assert.equal(url, URL)
    assert.equal(events[0]!['event'], 'store-url-kept')
    assert.match(String(events[0]!['reason']), /^PLANT_STORE_URL_FILE takes a file that holds the value of /)
  })

  test('is not in a file, and nothing is said', (t) => {
    const events = captureLog(t)
    followStoreUrl('memory:', undefined).reread()
    assert.deepEqual(events, [])
  })
})
