import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { reachableHost, urlOf } from '../../src/standalone/address.ts'

suite('a server that listens on', () => {
  const rows: readonly [host: string, reachable: string, url: string][] = [
    ['localhost', 'localhost', 'http://localhost:3000'],
    ['192.0.2.1', '192.0.2.1', 'http://192.0.2.1:3000'],
    ['2001:db8::1', '2001:db8::1', 'http://[2001:db8::1]:3000'],
    ['0.0.0.0', '127.0.0.1', 'http://127.0.0.1:3000'],
    ['::', '::1', 'http://[::1]:3000'],
  ]
  for (const [host, reachable, url] of rows) {
    test(`${host} is at ${url}`, () => {
      assert.deepEqual([reachableHost(host), urlOf(host, 3000)], [reachable, url])
    })
  }
})
