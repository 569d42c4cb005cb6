// Responses that the driver can't parse: `pg` parses in a listener, where an exception would crash the process.
import assert from 'node:assert/strict'
import { createServer, connect } from 'node:net'
import { after, suite, test, type TestContext } from 'node:test'
import { Pool } from 'pg'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { closeOnParseError } from '../../../src/stores/postgres/close-on-parse-error.ts'
import { captureError } from '../../support/database/errors.ts'
import { openDatabase } from '../../support/database/postgres-database.ts'
import { startProgram } from '../../support/program/program.ts'
import { startMessageServer } from '../../support/wire/message-server.ts'
import { listen, getPort } from '../../support/wire/service.ts'

/** Starts a proxy whose `tamper` replaces the next data from the server. */
async function startTamperingProxy(t: TestContext, target: number) {
  let replacement: Buffer | undefined
  let replaced = 0
  const listener = createServer((client) => {
    const server = connect(target, '127.0.0.1')
    t.after(() => (client.destroy(), server.destroy()))
    client.on('error', () => undefined).on('data', (chunk) => server.write(chunk))
    client.on('close', () => server.destroy())
    server.on('error', () => undefined).on('close', () => client.destroy())
    server.on('data', (chunk) => {
      client.write(replacement ?? chunk)
      if (replacement !== undefined) replaced++
      replacement = undefined
    })
  })
  await listen(listener)
  t.after(() => listener.close())
  return {
    port: getPort(listener),
    tamper: (hex: string) => void (replacement = Buffer.from(hex, 'hex')),
    replacedCount: () => replaced,
  }
}

/** Two DataRow messages and an Authentication message. */
const MESSAGES = {
  'a row without fields': '44000000060003',
  'fields of negative length': '4400000010' + '0003' + 'fffffffb' + '7fffffff' + '0000',
  'an unknown authentication method': '520000000800000007',
}

suite('a response that the driver cannot parse (denial of service by an uncaught exception)', async () => {
  const { url } = await openDatabase({ after })

  for (const [name, message] of Object.entries(MESSAGES)) {
    test(`results in a 500 response and a new connection (${name})`, async (t) => {
      const { port, tamper, replacedCount } = await startTamperingProxy(t, Number(new URL(url).port))
      const own = new URL(url)
      own.port = String(port)
      const program = await startProgram(t, { PLANT_STORE_URL: own.href })
      await program.waitUntilReady()
      tamper(message)
      const response = await program.fetch('/plants')
      assert.deepEqual([response.status, replacedCount()], [500, 1])
      const { reason } = await program.waitForLogEvent('failure')
      assert.match(String(reason), /The driver could not parse a response from the database server\./)
      assert.equal(await (await program.fetch('/plants')).text(), '[]')
    })
  }

  test('an unreadable response closes the connection even in a pool created by the application', async (t) => {
    const { port, tamper } = await startTamperingProxy(t, Number(new URL(url).port))
    const own = new URL(url)
    own.port = String(port)
    const pool = new Pool({ connectionString: own.href, max: 1 })
    t.after(() => pool.end())
    const store = postgresStore(pool)
    await store.migrate()
    tamper(MESSAGES['a row without fields'])
    const error = await captureError(store.create('ann', { id: 1n, name: 'fern' }))
    assert.equal(
      String(error),
      'UnreadableResponseError: The driver could not parse a response from the database server.',
    )
    await store.list('ann', { limit: 1, maxBytes: 1 })
  })

  test('an unreadable response while connecting does not crash the standalone server', async (t) => {
    const { port } = await startMessageServer(t, (socket) => {
      socket.write(Buffer.from(MESSAGES['an unknown authentication method'], 'hex'))
    })
    const program = await startProgram(t, { PLANT_STORE_URL: `postgres://ada@127.0.0.1:${port}/plants` })
    assert.match(
      String((await program.waitForLogEvent('unreachable'))['reason']),
      /Unknown authenticationOk message type 7/,
    )
    assert.equal((await program.fetch('/readyz')).status, 503)
    assert.equal((await program.fetch('/livez')).status, 200)
  })
})

test('closeOnParseError ignores connections without a stream', () => {
  closeOnParseError(undefined)
  closeOnParseError({})
})
