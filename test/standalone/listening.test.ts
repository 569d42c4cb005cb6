import assert from 'node:assert/strict'
import { createServer, Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { adminPlace, listen, servicePlace } from '../../src/standalone/listening.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { close, portOf, serve } from '../support/wire/service.ts'

const SERVICE = servicePlace(readSettings({ HOST: '127.0.0.1', PORT: '0' }))
const ALONE = { reusePort: false, socketMode: 0o660 }

/** Lets a server listen until the test ends. */
function listenAt(t: TestContext, place: typeof SERVICE, server = createServer()): Promise<string> {
  t.after(() => close(server))
  return listen(server, place)
}

suite('the place', () => {
  test('of the service is named by HOST and PORT', () => {
    assert.deepEqual(servicePlace({ ...readSettings({ HOST: '::1', PORT: '80' }), reusePort: true }), {
      host: '::1',
      hostVariable: 'HOST',
      port: 80,
      portVariable: 'PORT',
      reusePort: true,
      socketMode: 0o660,
    })
  })

  for (const [host, adminHost] of [
    ['::1', '::1'],
    ['/run/plants.sock', '127.0.0.1'],
  ]) {
    test(`of the admin port is at ${adminHost} if HOST is ${host}, and never shared`, () => {
      const settings = { ...readSettings({ HOST: host, PLANT_STORE_ADMIN_PORT: '81' }), reusePort: true }
      assert.deepEqual(adminPlace(settings), {
        host: adminHost,
        hostVariable: 'HOST',
        port: 81,
        portVariable: 'PLANT_STORE_ADMIN_PORT',
        ...ALONE,
      })
    })
  }

  test('of the admin port may be at a host of its own', () => {
    const settings = readSettings({ PLANT_STORE_ADMIN_PORT: '81', PLANT_STORE_ADMIN_HOST: '192.0.2.1' })
    assert.deepEqual(adminPlace(settings), {
      host: '192.0.2.1',
      hostVariable: 'PLANT_STORE_ADMIN_HOST',
      port: 81,
      portVariable: 'PLANT_STORE_ADMIN_PORT',
      ...ALONE,
    })
  })
})

test('the URL of a server has its real port, and the address that its host means', async (t) => {
  const server = createServer()
  const url = await listenAt(t, { ...SERVICE, host: '0' }, server)
  assert.equal(url, `http://127.0.0.1:${portOf(server)}`)
})

suite('a server that cannot listen', () => {
  test('names the port that another has', async (t) => {
    const port = portOf(await serve(t, createServer()))
    await assert.rejects(listenAt(t, { ...SERVICE, port }), {
      name: 'SettingError',
      message: `PORT takes a port that is free on HOST; ${port} is not (EADDRINUSE)`,
      exitStatus: 1,
    })
  })

  // Whether a user may take or share a port depends on the machine.
  for (const [code, message] of [
    ['EACCES', 'PORT takes a port that is free on HOST; 80 is not (EACCES)'],
    ['ENOTSUP', 'PLANT_STORE_REUSE_PORT takes 0 on this system (ENOTSUP)'],
  ] as const) {
    test(`says so if the system refuses the port with ${code}`, async (t) => {
      class Refused extends Server {
        override listen(): this {
          process.nextTick(() => this.emit('error', Object.assign(new Error(), { code })))
          return this
        }
      }
      await assert.rejects(listenAt(t, { ...SERVICE, port: 80 }, new Refused()), {
        name: 'SettingError',
        message,
        exitStatus: 2,
      })
    })
  }

  test('names the host that is none of this machine', async (t) => {
    await assert.rejects(listenAt(t, { ...SERVICE, host: '192.0.2.1' }), {
      name: 'SettingError',
      message: 'HOST takes an address of this machine, and this is not one (EADDRNOTAVAIL)',
    })
  })
})
