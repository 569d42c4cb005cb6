import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { endLookups, isLookingUp, lookup, lookupsEnded } from '../../src/stores/lookup.ts'
import { temporaryFile } from '../support/temporary-file.ts'

const lookUp = (hostname: string): Promise<unknown> =>
  new Promise((resolve) => lookup(hostname, { all: true }, (error, addresses) => resolve(error ?? addresses)))

suite('looks up a host for several sockets', () => {
  test('once at a time, and settles when the lookup ends', async () => {
    const first = lookUp('localhost')
    const second = lookUp('localhost')
    assert.equal(isLookingUp(), true)
    await lookupsEnded()
    assert.equal(isLookingUp(), false)
    assert.deepEqual(await first, await second)
    await lookupsEnded()
  })

  test('not after the process began to end: sockets get the last answer, or an error', async () => {
    const known = await lookUp('localhost')
    endLookups()
    const answer = lookUp('localhost')
    assert.equal(isLookingUp(), false)
    assert.deepEqual(await answer, known)
    const message = 'The process is ending, so elsewhere.invalid is not looked up.'
    assert.equal(((await lookUp('elsewhere.invalid')) as Error).message, message)
  })
})

const skip = (process.platform !== 'linux' || process.getuid?.() !== 0) && 'run as root on Linux'

test('asks a name server that never answers once for all sockets', { skip, timeout: 60_000 }, async (t) => {
  const socket = createSocket('udp4')
  t.after(() => socket.close())
  const names = new Set<string>()
  socket.on('message', (question) => names.add(question.toString('latin1', 13, 17))).bind(53, '127.0.0.88')
  await once(socket, 'listening')
  const file = temporaryFile(t, 'nameserver 127.0.0.88\noptions timeout:1 attempts:1\n')
  const code = `
    import { lookup } from './src/stores/lookup.ts'
    const startedAt = performance.now()
    let errors = 0
    for (let count = 0; count < 20; count++) {
      lookup('name.test', {}, (error) => error && ++errors === 20 && console.log(Math.round(performance.now() - startedAt)))
    }`
  const script = `mount --bind ${file} /etc/resolv.conf && exec "$@"`
  const node = [process.execPath, ...process.execArgv, '--input-type=module', '--eval', code]
  const { stdout } = await promisify(execFile)('unshare', ['-m', 'sh', '-c', script, 'sh', ...node])
  // Two threads at a time would take ten times as long for twenty lookups.
  assert.ok(Number(stdout) < 5000, stdout)
  assert.deepEqual([...names], ['name'])
})
