import assert from 'node:assert/strict'
import { createServer, Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { adminPlace, listen, servicePlace } from '../../src/standalone/listening.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { close, portOf, serve } from '../support/wire/service.ts'

const SERVICE = servicePlace(readSettings({ HOST: '127.0.0.1', PORT: '0' }))

/** Lets a server listen until the test ends. */
function listenAt(t: TestContext, place: typeof SERVICE, server = createServer()): Promise<string> {
  t.after(() => close(server))
  return listen(server, place)
}

suite('the place', () => {
  const rows: readonly [
    name: string,
    environment: Record<string, string>,
    placeOf: typeof servicePlace,
    expected: object,
  ][] = [
    [
      'of the service is named by HOST and PORT',
      { HOST: '::1', PORT: '80' },
      servicePlace,
      { host: '::1', hostVariable: 'HOST', port: 80, portVariable: 'PORT' },
    ],
    [
      'of the admin port is at HOST',
      { HOST: '::1', PLANT_STORE_ADMIN_PORT: '81' },
      adminPlace,
      { host: '::1', hostVariable: 'HOST', port: 81, portVariable: 'PLANT_STORE_ADMIN_PORT' },
    ],
    [
      'of the admin port may be at a host of its own',
      { PLANT_STORE_ADMIN_PORT: '81', PLANT_STORE_ADMIN_HOST: '192.0.2.1' },
      adminPlace,
      { host: '192.0.2.1', hostVariable: 'PLANT_STORE_ADMIN_HOST', port: 81, portVariable: 'PLANT_STORE_ADMIN_PORT' },
    ],
  ]
  for (const [name, environment, placeOf, expected] of rows) {
    test(name, () => assert.deepEqual(placeOf(readSettings(environment)), expected))
  }
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

  // Whether a user may take a port depends on the machine.
  test('names the port that its user may not take', async (t) => {
    class Forbidden extends Server {
      override listen(): this {
        process.nextTick(() => this.emit('error', Object.assign(new Error(), { code: 'EACCES' })))
        return this
      }
    }
    await assert.rejects(listenAt(t, { ...SERVICE, port: 80 }, new Forbidden()), {
      name: 'SettingError',
      message: 'PORT takes a port that is free on HOST; 80 is not (EACCES)',
      exitStatus: 2,
    })
  })

  test('names the host that is none of this machine', async (t) => {
    await assert.rejects(listenAt(t, { ...SERVICE, host: '192.0.2.1' }), {
      name: 'SettingError',
      message: 'HOST takes an address of this machine, and this is not one (EADDRNOTAVAIL)',
    })
  })
})
