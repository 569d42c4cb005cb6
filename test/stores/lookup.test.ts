import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { stopLookups, hasPendingLookups, lookup, waitForLookups } from '../../src/stores/lookup.ts'
import { skipWithoutMountNamespace } from '../support/skip-reasons.ts'
import { createTempFile } from '../support/temp-files.ts'

const lookUp = (hostname: string): Promise<unknown> =>
  new Promise((resolve) => lookup(hostname, { all: true }, (error, addresses) => resolve(error ?? addresses)))

suite('lookup', () => {
  test('concurrent lookups of the same host share one DNS lookup', async () => {
    const first = lookUp('localhost')
    const second = lookUp('localhost')
    assert.equal(hasPendingLookups(), true)
    await waitForLookups()
    assert.equal(hasPendingLookups(), false)
    assert.deepEqual(await first, await second)
    await waitForLookups()
  })

  test('lookup starts no DNS lookups after stopLookups()', async () => {
    const known = await lookUp('localhost')
    stopLookups()
    const answer = lookUp('localhost')
    assert.equal(hasPendingLookups(), false)
    assert.deepEqual(await answer, known)
    const message = 'Cannot resolve elsewhere.invalid: the process is shutting down.'
    assert.equal(((await lookUp('elsewhere.invalid')) as Error).message, message)
  })
})

test(
  'lookup sends a single query for 20 connections while the name server does not respond',
  { skip: skipWithoutMountNamespace, timeout: 60_000 },
  async (t) => {
    const socket = createSocket('udp4')
    t.after(() => socket.close())
    const names: string[] = []
    socket.on('message', (question) => names.push(question.toString('latin1', 13, 17))).bind(53, '127.0.0.88')
    await once(socket, 'listening')
    const file = createTempFile(t, 'nameserver 127.0.0.88\noptions timeout:1 attempts:1\n')
    const code = `
    import { lookup } from './src/stores/lookup.ts'
    let errors = 0
    for (let count = 0; count < 20; count++) {
      lookup('name.test', {}, (error) => error && ++errors === 20 && process.stdout.write('20 errors'))
    }`
    const script = `mount --bind ${file} /etc/resolv.conf && exec "$@"`
    const node = [process.execPath, ...process.execArgv, '--input-type=module', '--eval', code]
    const { stdout } = await promisify(execFile)('unshare', ['-m', 'sh', '-c', script, 'sh', ...node])
    assert.equal(stdout, '20 errors')
    // One question for IPv4 addresses, and one for IPv6 addresses.
    assert.deepEqual(names, ['name', 'name'])
  },
)
