import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { memoryStore } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { heapUsed } from '../support/heap.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { createService, serve, servePlants } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const FIELDS = 'Host: a\r\nAuthorization: Bearer ada\r\n'

function postBytes(id: number, fields = FIELDS): string {
  const body = `{"id":${id},"name":"plant ${id}"}`
  const content = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `POST /plants HTTP/1.1\r\n${fields}${content}\r\n${body}`
}

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

test('a request waits for those before it that the host answers', async (t) => {
  let answerHost: (() => void) | undefined
  let creates = 0
  const store = delegatingStore(memoryStore(), { create: () => ++creates > 0 })
  const service = createService({ store })
  const server = await serve(t, (request, response) => {
    if (request.url !== '/slow') return service(request, response)
    answerHost = () => response.end('slow')
  })
  const client = await RawConnection.open(server)
  const answers = client.answers(2)

  client.send('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n' + postBytes(1))
  await until(() => answerHost !== undefined)
  assert.equal(creates, 0)
  answerHost?.()

  const bodies = (await answers).map(({ body }) => body)
  assert.deepEqual(bodies, ['slow', '{"name":"plant 1"}'])
  client.socket.destroy()
})

test('a response that the host has ended holds nothing up', async (t) => {
  const service = createService()
  const server = await serve(t, (request, response) => {
    if (request.url !== '/plants/1') return service(request, response)
    response.on('finish', () => service(request, response)).end('the host')
  })
  const client = await RawConnection.open(server)
  const first = client.answers(1)
  client.send(`DELETE /plants/1 HTTP/1.1\r\n${FIELDS}\r\n`)
  const bodies = (await first).map(({ body }) => body)
  assert.deepEqual(bodies, ['the host'])
  const second = client.statuses(1)
  client.send(`DELETE /plants/2 HTTP/1.1\r\n${FIELDS}\r\n`)
  assert.deepEqual(await second, [404])
  client.socket.destroy()
})

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
