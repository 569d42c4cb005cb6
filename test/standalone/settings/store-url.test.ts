import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { followStoreUrl } from '../../../src/standalone/settings/store-url.ts'
import { captureLog } from '../../support/program/captured-log.ts'

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
  for (const [name, found, holds, event] of rows) {
    test(name, (t) => {
      const events = captureLog(t)
      const url = followStoreUrl(URL, () => found)
      url.reread()
      assert.equal(url.current(), holds)
      assert.deepEqual(events, [event])
    })
  }

  test('is kept if it is malformed, and the log says nothing of it', (t) => {
    const events = captureLog(t)
    const url = followStoreUrl(URL, () => 'postgres://ada:se/cret@host/plants')
    url.reread()
    assert.equal(url.current(), URL)
    assert.match(String(events[0]!['reason']), /^takes postgres:\/\/user:password@host\/database; write/)
  })

  test('is kept if the file is gone', (t) => {
    const events = captureLog(t)
    const url = followStoreUrl(URL, () => {
      throw new Error('takes a file')
    })
    url.reread()
    assert.equal(url.current(), URL)
    assert.deepEqual([events[0]!['event'], events[0]!['reason']], ['store-url-kept', 'takes a file'])
  })

  test('is not in a file, and nothing is said', (t) => {
    const events = captureLog(t)
    followStoreUrl('memory:', () => undefined).reread()
    assert.deepEqual(events, [])
  })
})
