import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { openBoth } from '../support/wire/raw-connection.ts'
import { keptIds } from '../support/wire/service.ts'
import { serveStandalone, wakeGuard } from '../support/program/standalone-server.ts'

const AUTHORIZED = 'Host: plants\r\nAuthorization: Bearer ada\r\n'
const MANY_FIELDS = 'a:\r\n'.repeat(990)

function post(id: number, fields = ''): string {
  const body = `{"id":${id},"name":"Fern"}`
  const content = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `POST /plants HTTP/1.1\r\n${AUTHORIZED}${fields}${content}\r\n${body}`
}

const CHUNKED = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`

const BODY = '{"id":1,"name":"Fern"}'.padEnd(4096)

const LIST = `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`

const UPGRADE = 'Connection: upgrade\r\nUpgrade: h2c\r\n'

suite('a client that ends its side after its requests gets an answer to each of them, and then the end:', () => {
  const rows: readonly [name: string, sent: string, statuses: readonly number[], kept: readonly bigint[]][] = [
    ['a create', post(1), [200], [1n]],
    ['creates', post(1) + post(2) + post(1), [200, 200, 409], [1n, 2n]],
    ['a list with half of a body', LIST.replace('Host', 'Content-Length: 100\r\nHost') + '[', [200], []],
    ['a create with many fields', post(1, MANY_FIELDS), [200], [1n]],
    ['requests of the program', 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3), [200, 200, 200], []],
    ['a create, and half of another request', `${post(1)}GET /pla`, [200, 400], [1n]],
    ['half of a create that asks for an upgrade', post(1, UPGRADE).slice(0, -3), [400], []],
    ['half of a long header', `GET / HTTP/1.1\r\nHost: a\r\nX:${' '.repeat(8000)}\r`, [400], []],
    ['half of a long body', post(1).replace('Length: ', 'Length: 9') + ' '.repeat(800), [400], []],
    ['half of a chunk', `${CHUNKED}2000\r\n${' '.repeat(5000)}`, [400], []],
    ['a create, behind a list, in long chunks', `${LIST}${CHUNKED}1000\r\n${BODY}\r\n0\r\n\r\n`, [200, 200], [1n]],
    ['nothing', '', [], []],
  ]
  for (const [name, sent, statuses, kept] of rows) {
    for (const isGuarded of [false, true]) {
      test(`${name}, if the guard ${isGuarded ? 'is awake' : 'sleeps'}`, async (t) => {
        const store = memoryStore()
        const server = await serveStandalone(t, { store }, { keepAliveTimeoutMs: 60_000, headersTimeoutMs: 60_000 })
        if (isGuarded) await wakeGuard(server)
        const { client, accepted } = await openBoth(server)
        const closed = once(accepted, 'close')
        client.socket.end(sent)
        assert.deepEqual(await client.statuses(), statuses)
        await closed
        assert.deepEqual(await keptIds(store), kept)
      })
    }
  }
})
