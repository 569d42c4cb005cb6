import assert from 'node:assert/strict'
import { createServer, Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { listen, servicePlace } from '../../src/standalone/listening.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { close, portOf } from '../support/wire/service.ts'

const SERVICE = servicePlace(readSettings({ HOST: '127.0.0.1', PORT: '0' }))

/** Lets a server listen until the test ends. */
function listenAt(t: TestContext, place: typeof SERVICE, server = createServer()): Promise<string> {
  t.after(() => close(server))
  return listen(server, place)
}

test('the URL of a server has its real port, and the address that its host means', async (t) => {
  const server = createServer()
  const url = await listenAt(t, { ...SERVICE, host: '0' }, server)
  assert.equal(url, `http://127.0.0.1:${portOf(server)}`)
})

suite('a server that cannot listen', () => {
  // Whether a user may take or share a port depends on the machine.
  for (const [code, message] of [
    ['EACCES', 'PORT takes a port that is free on HOST; 80 is not (EACCES)'],
    ['EADDRNOTAVAIL', 'HOST takes an address of this machine, and this is not one (EADDRNOTAVAIL)'],
    ['ENOTSUP', 'PLANT_STORE_REUSE_PORT takes 0 on this system (ENOTSUP)'],
  ] as const) {
    test(`says so if the system refuses with ${code}`, async (t) => {
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
})
