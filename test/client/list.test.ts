import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { createPlantClient, type ListedPlant, type PlantClient } from '../../src/client/plant-client.ts'
import { startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { get, getPort, sendToPort, serve, servePlants } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createStoreWithPlants } from '../support/plant-list.ts'

async function count(plants: AsyncIterable<ListedPlant>): Promise<number> {
  let lastId = 0n
  for await (const { id } of plants) assert.equal(id, ++lastId)
  return Number(lastId)
}

suite('a list of which no response has a Link header', () => {
  /** Connects a client through a proxy that removes the Link header, or replaces it. */
  async function connect(t: TestContext, plants: number, maxLimit: number, link?: string): Promise<PlantClient> {
    const port = getPort(await servePlants(t, { store: createStoreWithPlants(plants), maxLimit }))
    const proxy = await serve(t, (request, response) => {
      void sendToPort(port, get('ada', request.url)).then(({ status, body }) => {
        response.writeHead(status, link === undefined ? {} : { Link: link }).end(body)
      })
    })
    return createPlantClient({ url: `http://127.0.0.1:${getPort(proxy)}`, token: 'ada' })
  }

  for (const link of [undefined, '</style.css>; rel=preload', '<plants?after=1>; rel="nextish prev"']) {
    test(`has all plants even if the service returns fewer than requested (Link: ${link})`, async (t) => {
      const client = await connect(t, 1000, 100, link)
      assert.equal(await count(client.list()), 1000)
      assert.equal(await count(client.list({ limit: 250 })), 250)
    })
  }

  test('has a next page unless a page is empty', async (t) => {
    const client = await connect(t, 3, 2)
    const nexts = []
    for (const after of [undefined, 2, 3]) nexts.push((await client.listPage({ after })).next)
    assert.deepEqual(nexts, [2n, 3n, undefined])
  })
})

suite('a list of which a response had a Link header', () => {
  test('ends with the first page without one', async (t) => {
    const proxy = await startFaultyProxy(t, [], createStoreWithPlants(501))
    const client = proxy.connect()
    assert.equal(await count(client.list()), 501)
    assert.equal((await client.listPage({ after: 500 })).next, undefined)
    assert.equal(proxy.requests.length, 3)
  })

  for (const link of [
    '<http://other/plants?after=1>; rel="next"',
    '</>; rel="prev", <plants?limit=1&after=900>; title=x; rel=next, </>; rel="last"',
    '<plants>;rel=next',
  ]) {
    test(`goes on after its last plant, wherever the link points to (${link})`, async (t) => {
      const addLink: Fault = async (_, response, forward) => {
        const { body } = await forward()
        response.writeHead(200, { Link: link }).end(body)
      }
      const proxy = await startFaultyProxy(t, [addLink], createStoreWithPlants(501))
      assert.equal(await count(proxy.connect().list()), 501)
    })
  }
})

suite('ending a list', () => {
  /** Starts a server whose second page hangs, and waits for that page to be requested and its connection closed. */
  async function startHanging(t: TestContext) {
    let [isRequested, isClosed] = [false, false]
    const hangUntilClosed: Fault = (request) => {
      isRequested = true
      request.socket.on('close', () => (isClosed = true))
    }
    const proxy = await startFaultyProxy(t, [undefined, hangUntilClosed], createStoreWithPlants(501))
    return {
      proxy,
      list: proxy.connect().list(),
      requested: () => waitUntil(() => isRequested),
      closed: () => waitUntil(() => isClosed),
    }
  }

  test('with break at the end of a page sends no further request', async (t) => {
    const { proxy, list } = await startHanging(t)
    for await (const { id } of list) if (id === 500n) break
    assert.deepEqual([await list.next(), proxy.requests.length], [{ done: true, value: undefined }, 1])
  })

  test('with return() aborts the page on its way, and ends a pending next()', async (t) => {
    const { list, requested, closed } = await startHanging(t)
    for (let id = 1n; id <= 500n; id++) await list.next()
    const pending = [list.next(), list.next()]
    await requested()
    assert.deepEqual(await list.return(), { done: true, value: undefined })
    assert.deepEqual(await Promise.all(pending), Array(2).fill({ done: true, value: undefined }))
    await closed()
  })

  test('with throw() aborts the page on its way', async (t) => {
    const { list, requested, closed } = await startHanging(t)
    for (let id = 1n; id <= 500n; id++) await list.next()
    const pending = list.next()
    await requested()
    const reason = new Error('enough')
    await assert.rejects(list.throw(reason), reason)
    assert.equal((await pending).done, true)
    await closed()
  })

  test('by destroying a Readable aborts the page on its way', async (t) => {
    const { list, requested, closed } = await startHanging(t)
    const readable = Readable.from(list).resume()
    await requested()
    readable.destroy()
    await closed()
  })
})

test('eleven concurrent calls with one signal add one listener to it, and end with its reason', async (t) => {
  let closedCount = 0
  const hang: Fault = (request) => request.socket.on('close', () => closedCount++)
  const proxy = await startFaultyProxy(t, Array<Fault>(11).fill(hang))
  const client = proxy.connect()
  const controller = new AbortController()
  const calls = Array.from({ length: 11 }, (_, id) => client.delete(id, { signal: controller.signal }))
  await waitUntil(() => proxy.requests.length === 11)
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1)
  controller.abort('enough')
  for (const { reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) assert.equal(reason, 'enough')
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  await waitUntil(() => closedCount === 11)
  assert.equal(proxy.requests.length, 11)
})
