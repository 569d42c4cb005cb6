import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { createPlantStore, memoryStore, type Store } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { heapUsed } from '../support/heap.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { del, get, send, serve, servePlants } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const FIELDS = 'Host: a\r\nAuthorization: Bearer ada\r\n'

function postBytes(id: number, fields = FIELDS): string {
  const body = `{"id":${id},"name":"plant ${id}"}`
  const content = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `POST /plants HTTP/1.1\r\n${fields}${content}\r\n${body}`
}

function deleteBytes(id: number): string {
  return `DELETE /plants/${id} HTTP/1.1\r\n${FIELDS}\r\n`
}

/** A store whose calls wait until they are let go, one by one. */
function heldStore(): { store: Store; calls: string[]; release: () => void } {
  const calls: string[] = []
  const held: (() => void)[] = []
  async function hold<T>(call: string, answer: () => T | Promise<T>): Promise<T> {
    calls.push(call)
    await new Promise<void>((resolve) => held.push(resolve))
    return answer()
  }
  const memory = memoryStore()
  const store: Store = {
    create: (owner, plant) => hold(`create ${plant.id}`, () => memory.create(owner, plant)),
    list: (owner, page) => hold('list', () => memory.list(owner, page)),
    delete: (owner, id) => hold(`delete ${id}`, () => memory.delete(owner, id)),
  }
  return { store, calls, release: () => held.shift()!() }
}

const ada = (token: string): string => token

test('10,000 pipelined requests are answered in order, one at a time, in little memory', async (t) => {
  const count = 10_000
  let running = 0
  let most = 0
  let heap = 0
  const memory = memoryStore()
  const store = delegatingStore(memory, {
    async create(owner, plant) {
      most = Math.max(most, ++running)
      await nextRound()
      if (plant.id % 1000n === 0n) heap = Math.max(heap, heapUsed())
      running--
      return memory.create(owner, plant)
    },
  })
  const server = await servePlants(t, { store })
  const client = await RawConnection.open(server)
  const requests = Array.from({ length: count }, (_, id) => postBytes(id))
  requests.push(postBytes(0, `${FIELDS}Connection: close\r\n`))
  const before = heapUsed()

  client.send(requests.join(''))
  const answers = [...(await client.answers())]

  assert.equal(answers.pop()!.status, 409)
  assert.deepEqual(
    answers.map(({ body }) => body),
    Array.from({ length: count }, (_, id) => `{"name":"plant ${id}"}`),
  )
  assert.equal(most, 1)
  assert.ok(heap - before < 32 * 2 ** 20, `the heap grew by ${heap - before} bytes`)
})

test('each connection has a turn in a round at most, and none has two while another waits for its first', async (t) => {
  let round = 0
  let counting = setImmediate(function count() {
    round++
    counting = setImmediate(count)
  })
  t.after(() => clearImmediate(counting))
  const turns: { readonly name: string; readonly round: number }[] = []
  const server = await servePlants(t, {
    authenticate(name) {
      turns.push({ name, round })
      return name
    },
  })
  const names = ['ada', 'bob', 'eve', 'dan']
  const clients = await Promise.all(names.map(() => RawConnection.open(server)))
  const request = (name: string): string => `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${name}\r\n\r\n`

  await Promise.all(clients.map((client, i) => client.send(request(names[i]!).repeat(50)).answers(50)))

  const roundsOf = (name: string): number[] => turns.filter((turn) => turn.name === name).map(({ round }) => round)
  for (const name of names) assert.equal(new Set(roundsOf(name)).size, 50, `the rounds of ${name}`)
  const begin = Math.max(...names.map((name) => turns.findIndex((turn) => turn.name === name)))
  const end = Math.min(...names.map((name) => turns.findLastIndex((turn) => turn.name === name)))
  for (let at = begin; at < end - names.length; at++) {
    const next = turns.slice(at, at + names.length).map(({ name }) => name)
    assert.deepEqual(next.toSorted(), names.toSorted())
  }
  assert.ok(end - begin > names.length)
})

test('no more is read of a connection while its requests wait', async (t) => {
  const { store, calls, release } = heldStore()
  const service = createPlantStore({ authenticate: ada, store })
  let announced = 0
  let bytesRead = (): number => 0
  const server = await serve(t, (request, response) => {
    if (request.method === 'DELETE') {
      announced++
      bytesRead = () => request.socket.bytesRead
    }
    service(request, response)
  })
  const client = await RawConnection.open(server)

  client.send(deleteBytes(1).repeat(200_000))
  for (const turns of [1, 2]) {
    await until(() => calls.length === turns)
    // Each of these is more rounds of the event loop, in which the connection could be read.
    for (let i = 0; i < 50; i++) await send(server, get('bob', '/nothing'))
    assert.equal(calls.length, turns)
    release()
  }

  assert.ok(bytesRead() <= 2 * 65_536, `${bytesRead()} bytes were read`)
  assert.ok(announced <= 2 * 1000, `${announced} requests were taken in`)
  client.socket.destroy()
})

test('a connection is read on once no request waits', async (t) => {
  const server = await servePlants(t)
  const client = await RawConnection.open(server)
  for (const round of [1, 2, 3]) {
    const statuses = client.statuses(3)
    client.send(postBytes(round) + postBytes(round) + deleteBytes(round))
    assert.deepEqual(await statuses, [200, 409, 204])
  }
  client.socket.destroy()
})

test('a request whose turn comes before the rest of its body is carried out', async (t) => {
  const { store, calls, release } = heldStore()
  const server = await servePlants(t, { store })
  const client = await RawConnection.open(server)
  const last = postBytes(2)
  const answers = client.answers(2)

  client.send(postBytes(1) + last.slice(0, -5))
  await until(() => calls.length === 1)
  client.send(last.slice(-5))
  release()
  await until(() => calls.length === 2)
  release()

  const bodies = (await answers).map(({ body }) => body)
  assert.deepEqual(bodies, ['{"name":"plant 1"}', '{"name":"plant 2"}'])
  client.socket.destroy()
})

test('no request is carried out after an answer that closes the connection', async (t) => {
  const memory = memoryStore()
  const service = createPlantStore({ authenticate: ada, store: memory })
  const server = await serve(t, (request, response) => {
    if (request.url === '/plants/2') response.setHeader('Connection', 'close')
    service(request, response)
  })
  for (const id of [1n, 2n, 3n]) await memory.create('ada', { id, name: '' })
  const client = await RawConnection.open(server)

  client.send(deleteBytes(1) + deleteBytes(2) + deleteBytes(3))

  assert.deepEqual(await client.statuses(), [204, 204])
  assert.equal((await send(server, del('ada', '3'))).status, 204)
})

test('no request is carried out whose client went before its turn', async (t) => {
  const { store, calls, release } = heldStore()
  let isGone = false
  const server = await servePlants(t, { store })
  server.once('connection', (connection: Socket) => connection.on('close', () => (isGone = true)))
  const client = await RawConnection.open(server)

  client.send(deleteBytes(1) + deleteBytes(2))
  await until(() => calls.length === 1)
  client.socket.resetAndDestroy()
  release()
  await until(() => isGone)

  const next = send(server, get('ada'))
  await until(() => calls.length === 2)
  release()
  assert.equal((await next).status, 200)
  assert.deepEqual(calls, ['delete 1', 'list'])
})

test('a request waits for those before it that the host answers', async (t) => {
  let answerHost: (() => void) | undefined
  const { store, calls, release } = heldStore()
  const service = createPlantStore({ authenticate: ada, store })
  const server = await serve(t, (request, response) => {
    if (request.url !== '/slow') return service(request, response)
    answerHost = () => response.end('slow')
  })
  const client = await RawConnection.open(server)
  const answers = client.answers(2)

  client.send('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n' + postBytes(1))
  await until(() => answerHost !== undefined)
  assert.deepEqual(calls, [])
  answerHost?.()
  await until(() => calls.length === 1)
  release()

  const bodies = (await answers).map(({ body }) => body)
  assert.deepEqual(bodies, ['slow', '{"name":"plant 1"}'])
  client.socket.destroy()
})

test('a response that the host has ended holds nothing up', async (t) => {
  const service = createPlantStore({ authenticate: ada })
  const server = await serve(t, (request, response) => {
    if (request.url !== '/plants/1') return service(request, response)
    response.on('finish', () => service(request, response)).end('the host')
  })
  const client = await RawConnection.open(server)
  const first = client.answers(1)
  client.send(deleteBytes(1))
  const bodies = (await first).map(({ body }) => body)
  assert.deepEqual(bodies, ['the host'])
  const second = client.statuses(1)
  client.send(deleteBytes(2))
  assert.deepEqual(await second, [404])
  client.socket.destroy()
})

test('requests in the packet that ends a refused body do not break Node', async (t) => {
  const server = await servePlants(t)
  const client = await RawConnection.open(server)
  const refused = client.statuses(1)
  client.send('POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel')
  await refused
  const rest = client.answers()
  const anonymous = 'PUT /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'
  client.send(`lo${anonymous.repeat(2)}GET /plants HTTP/1.1\r\nHost: a\r\n\r\n`)
  assert.deepEqual(await refused, [401])
  assert.deepEqual(await rest, [])
  assert.equal((await send(server, get('ada'))).status, 200)
})

for (const [version, line] of [
  ['0.9', 'GET /plants'],
  ['2.0', 'GET /plants HTTP/2.0'],
]) {
  test(`a request of HTTP/${version} behind a response that closes the connection does not break Node`, async (t) => {
    const server = await servePlants(t)
    const client = await RawConnection.open(server)
    const statuses = client.statuses()
    const content = 'Host: a\r\nContent-Length: 5\r\n\r\nhello'
    // Node refuses the first itself, as it has no Host, and has closed the connection when the second's body is read.
    client.send(`GET /plants HTTP/1.1\r\n\r\nPOST /plants HTTP/1.1\r\n${content}${line}\r\n${content}GET`)
    assert.deepEqual(await statuses, [400])
    assert.equal((await send(server, get('ada'))).status, 200)
  })
}

test('a request that begins in the packet of a body over the limit is read to its end', async (t) => {
  const server = await servePlants(t, { maxBodyBytes: 10_000 })
  const client = await RawConnection.open(server)
  const content = (length: number): string => `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
  const statuses = client.statuses(2)
  const [first, second] = [`POST /plants HTTP/1.1\r\n${FIELDS}${content(56_000)}${' '.repeat(56_000)}`, postBytes(1)]
  const arrived = once(server, 'request').then(() => once(server, 'request'))
  client.send(first + second.slice(0, -10))
  await arrived
  client.send(second.slice(-10))
  assert.deepEqual(await statuses, [413, 200])
  client.socket.destroy()
})

test('the response to a request that asks for another protocol closes the connection', async (t) => {
  // Node drops what came in the same read, so a body that comes in the next would be taken for requests.
  const store = memoryStore()
  const server = await servePlants(t, { store })
  const client = await RawConnection.open(server)
  const answers = client.answers()
  client.send(`GET /plants HTTP/1.1\r\n${FIELDS}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n` + postBytes(1))
  const seen = (await answers).map(({ status, headers }) => [status, headers.get('connection')])
  assert.deepEqual(seen, [[200, 'close']])
  assert.deepEqual(store.list('ada', { limit: 10, maxBytes: Infinity }), [])
})
