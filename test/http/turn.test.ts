import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { whenItsTurn } from '../../src/http/turn.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { createService, sendRequest, serve, servePlants, get } from '../support/service.ts'
import { memoryStore } from '../../src/index.ts'
import { overrideStore } from '../support/override-store.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { waitUntil } from '../support/wait-until.ts'

const FIELDS = 'Host: a\r\nAuthorization: Bearer ada\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const createPost = (id: number): string => {
  const body = `{"id":${id},"name":"${id}"}`
  return `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

suite('pipelined requests', { timeout: 60_000 }, () => {
  test('run one after another, in order', async (t) => {
    let running = 0
    const events: string[] = []
    const memory = memoryStore()
    const store = overrideStore(memory, {
      async create(owner, plant) {
        assert.equal(++running, 1)
        await new Promise((resolve) => setTimeout(resolve, Number(3n - plant.id)))
        events.push(`create ${plant.id}`)
        running--
        return memory.create(owner, plant)
      },
    })
    const client = await RawConnection.open(await servePlants(t, { store }))
    const responses = client.readResponses(4)
    client.send([1, 2, 3].map(createPost).join('') + LIST)
    assert.equal((await responses).at(-1)!.body, '[{"name":"1"},{"name":"2"},{"name":"3"}]')
    assert.deepEqual(events, ['create 1', 'create 2', 'create 3'])
    client.socket.destroy()
  })

  for (const [waiting, outcome] of [
    [100, 'answered'],
    [101, 'destroyed'],
  ] as const) {
    test(`are ${outcome} if ${waiting} of them wait`, async (t) => {
      const gate = new DeferredCall<string>()
      let calls = 0
      const authenticate = (token: string): string | Promise<string> => (++calls === 1 ? gate.call() : token)
      const server = await servePlants(t, { authenticate })
      const client = await RawConnection.open(server)
      const responses = outcome === 'answered' ? client.readResponses(1 + waiting) : client.closed
      client.send(LIST.repeat(1 + waiting))
      await gate.called
      if (outcome === 'destroyed') assert.equal(await responses, '')
      gate.resolve('ada')
      if (outcome === 'answered') assert.equal((await responses).length, 101)
      if (outcome === 'answered') assert.deepEqual(await client.send(LIST).readStatuses(1), [200])
      assert.equal((await sendRequest(server, get('ada'))).status, 200)
      client.socket.destroy()
    })
  }

  test('that follow a response with Connection: close do not run', async (t) => {
    const store = memoryStore()
    const client = await RawConnection.open(await servePlants(t, { store }))
    client.send(LIST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n') + createPost(1) + createPost(2))
    assert.equal((await client.closed).match(/HTTP\/1\.1/g)?.length, 1)
    assert.deepEqual((await store.list('ada', { limit: 9, maxBytes: 9 })).plants, [])
  })

  test('run although the host has ended responses to requests before them', async (t) => {
    const gate = new DeferredCall<string>()
    let calls = 0
    const service = createService({ authenticate: (token) => (++calls === 1 ? gate.call() : token) })
    const server = createServer((request, response) => {
      service(request, response)
      if (request.headers.expires === '0') response.end('expired')
    })
    const client = await RawConnection.open(await serve(t, server))
    const responses = client.readResponses(4)
    const ended = LIST.replace('\r\n\r\n', '\r\nExpires: 0\r\n\r\n')
    client.send(LIST + ended + ended + LIST)
    await gate.called
    gate.resolve('ada')
    assert.deepEqual(
      (await responses).map(({ body }) => body),
      ['[]', 'expired', 'expired', '[]'],
    )
    assert.deepEqual(await client.send(LIST).readStatuses(1), [200])
    client.socket.destroy()
  })

  test('are not read from the connection while one of them waits', async (t) => {
    const gate = new DeferredCall<string>()
    const server = await serve(t, createServer(createService({ authenticate: () => gate.call() })))
    const client = await RawConnection.open(server)
    const responses = client.readResponses(2)
    let accepted: IncomingMessage['socket'] | undefined
    server.on('request', ({ socket }: IncomingMessage) => (accepted = socket))
    client.send(LIST.repeat(2))
    await gate.called
    await waitUntil(() => accepted?.isPaused() === true)
    client.send(LIST.repeat(10_000))
    await waitUntil(() => client.socket.writableLength === 0 || client.socket.writableNeedDrain)
    assert.ok(accepted!.bytesRead < 1_000 * LIST.length)
    client.socket.destroy()
    gate.resolve('ada')
    await responses.catch(() => undefined)
  })
})

test('a request without a connection does not wait', () => {
  for (const socket of [null, undefined, {}]) {
    const response = { socket: null, writableEnded: false } as unknown as ServerResponse
    let hasRun = false
    whenItsTurn({ request: { socket } as unknown as IncomingMessage, response }, () => (hasRun = true))
    assert.ok(hasRun)
  }
})
