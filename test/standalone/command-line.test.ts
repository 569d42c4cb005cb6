import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askReady } from '../../src/standalone/command-line.ts'
import { portOf, serve } from '../support/wire/service.ts'

test('a service is not ready if it does not answer in time', async (t) => {
  const address = { host: '127.0.0.1', port: portOf(await serve(t, () => undefined)) }
  await assert.rejects(askReady(address, 100), { message: 'the service did not answer in time' })
})

test('a service cannot be asked at port 0', async () => {
  await assert.rejects(askReady({ host: '127.0.0.1', port: 0 }), {
    name: 'SettingError',
    message: 'PORT takes for --ready the port on which the service listens, not 0',
  })
})
