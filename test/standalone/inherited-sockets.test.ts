import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { inheritedSockets } from '../../src/standalone/listening.ts'
import { asSystemd, openSocket } from '../support/program/held-socket.ts'
import { Program, startProgram, TOKEN } from '../support/program/program.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'
import { freePort } from '../support/wire/free-port.ts'

suite('the sockets of systemd', () => {
  const service = { descriptor: 3, name: 'plants' }
  const rows: readonly [what: string, environment: Record<string, string>, sockets: object][] = [
    ['are none without variables', {}, {}],
    ['are none if they are for another process', { LISTEN_PID: '8', LISTEN_FDS: '1' }, {}],
    [
      'are that of the service',
      { LISTEN_PID: '7', LISTEN_FDS: '1', LISTEN_FDNAMES: 'plants' },
      { service, admin: undefined },
    ],
    ['need no name', { LISTEN_PID: '7', LISTEN_FDS: '1' }, { service: { descriptor: 3, name: '' }, admin: undefined }],
    [
      'are known by their names',
      { LISTEN_PID: '7', LISTEN_FDS: '2', LISTEN_FDNAMES: 'admin:plants' },
      { service: { descriptor: 4, name: 'plants' }, admin: { descriptor: 3, name: 'admin' } },
    ],
  ]
  for (const [what, environment, sockets] of rows) {
    test(what, () => assert.deepEqual(inheritedSockets(environment, 7), sockets))
  }

  for (const [what, fds, names] of [
    ['there is none for the service', '1', 'admin'],
    ['there are two for the service', '2', 'plants'],
    ['there are two for the admin port', '3', 'plants:admin:admin'],
    ...['x', '0', '01', '0x1', '1.5', '3', '100000000', '4294967296'].map((fds) => [`there are ${fds}`, fds, '']),
  ] as [what: string, fds: string, names: string][]) {
    test(`are refused if ${what}`, () => {
      const environment = { LISTEN_PID: '7', LISTEN_FDS: fds, LISTEN_FDNAMES: names }
      const message = 'LISTEN_FDS takes one socket, and one more if LISTEN_FDNAMES calls it admin'
      assert.throws(() => inheritedSockets(environment, 7), { name: 'SettingError', message })
    })
  }
})

suite('a program that systemd gives its sockets', () => {
  test('listens on them, whatever its settings say', async (t) => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const surroundings = asSystemd({ plants: openSocket(port), admin: openSocket(adminPort) })
    const program = await startProgram(t, { PORT: '1', PLANT_STORE_ADMIN_PORT: '1' }, surroundings)
    assert.equal(program.url, `http://127.0.0.1:${port}`)
    const { admin } = await program.logged('start')
    assert.equal(admin, `http://127.0.0.1:${adminPort}`)
    assert.equal((await fetch(`http://127.0.0.1:${adminPort}/metrics`)).status, 200)
  })

  test('leaves the file of a Unix socket where it is', async (t) => {
    const path = join(temporaryDirectory(t), 'plants.sock')
    const socket = openSocket(path)
    t.after(() => socket.close())
    const program = await startProgram(t, {}, asSystemd({ plants: socket }))
    assert.equal(program.url, 'unix:plants')
    const end = once(program.child, 'exit')
    program.child.kill('SIGTERM')
    assert.deepEqual(await end, [0, null])
    assert.ok(existsSync(path))
  })

  test('ends with status 2 if one is no socket', async () => {
    const surroundings = { prelude: 'export LISTEN_PID=$$ LISTEN_FDS=1; exec 3< /dev/null' }
    const program = new Program({ PLANT_STORE_TOKENS: `ada:${TOKEN}` }, [], [], surroundings)
    assert.equal(await program.ended, 2)
    assert.deepEqual(program.stderr.all, [
      'plant-store: LISTEN_FDS takes sockets to listen on, and descriptor 3 is none (EINVAL)',
    ])
  })
})
