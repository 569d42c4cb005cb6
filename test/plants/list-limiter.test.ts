import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../src/index.ts'
import { ListLimiter } from '../../src/plants/list-limiter.ts'
import { listPlants, type ListRequest } from '../../src/plants/list-plants.ts'
import { createPlantList } from '../support/database/plant-list.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'

/** A list whose client can disconnect. */
function createList(owner = 'ada'): { owner: string; client: EventEmitter; disconnect: () => void } {
  const client = new EventEmitter()
  return { owner, client, disconnect: () => client.emit('gone') }
}

const CLIENT_EVENTS = {
  isClosed: () => false,
  onClose: (client: EventEmitter, listener: () => void) => client.on('gone', listener),
}

suite('the list limiter', () => {
  test('resumes queued lists in order, skipping lists whose clients have disconnected', async () => {
    const slots = new ListLimiter(2, 60_000, CLIENT_EVENTS)
    const lists = Array.from({ length: 5 }, () => createList())
    const [first, second, third, fourth, fifth] = lists.map((list) => slots.acquire(list))
    assert.deepEqual([first, second], [undefined, undefined])
    lists[2]!.disconnect()
    assert.equal(await third, false)
    const order: string[] = []
    const waiting = [fourth!.then(() => order.push('fourth')), fifth!.then(() => order.push('fifth'))]
    slots.release('ada')
    await waiting[0]
    lists[3]!.disconnect()
    assert.deepEqual(order, ['fourth'])
    slots.release('ada')
    await waiting[1]
    slots.release('ada')
    slots.release('ada')
    assert.deepEqual([slots.acquire(createList()), slots.acquire(createList())], [undefined, undefined])
    const last = createList()
    const waits = slots.acquire(last)
    last.disconnect()
    assert.equal(await waits, false)
  })

  test('rejects a list that has waited longer than the timeout', async () => {
    const slots = new ListLimiter(1, 1, CLIENT_EVENTS)
    assert.equal(slots.acquire(createList()), undefined)
    const reason = 'The list waited 1 ms for another list of its owner to end (maxListsPerOwner is 1).'
    await assert.rejects(slots.acquire(createList())!, new StoreUnavailableError(reason))
    slots.release('ada')
    assert.equal(slots.acquire(createList()), undefined)
  })

  for (const limit of [Infinity, 2400]) {
    test(`rereads the first page of a list that had to wait (limit ${limit})`, async () => {
      const store = memoryStore()
      for (let id = 1n; id <= 2500n; id++) void store.create('ada', { id, name: 'Fern' })
      const reads: (bigint | undefined)[] = []
      const list = createPlantList((request) => (reads.push(request.after), store.list('ada', request)))
      const countOf = async (change: Partial<ListRequest>): Promise<number> => {
        const { body } = await listPlants({ ...list, ...change })
        let text = ''
        for await (const piece of typeof body === 'string' ? [body] : body) text += piece
        return (JSON.parse(text) as unknown[]).length
      }
      const { body } = await listPlants(list)
      const first = (body as AsyncIterable<string>)[Symbol.asyncIterator]()
      await first.next()
      const second = countOf({ limit, after: 50n })
      // Lists of other owners, and lists that fit in one page, don't wait.
      assert.equal(await countOf({ owner: 'grace' }), 2500)
      assert.equal(await countOf({ limit: 10 }), 10)
      reads.length = 0
      await first.return?.()
      assert.equal(await second, Math.min(limit, 2450))
      assert.equal(reads[0], 50n)
    })
  }
})

test('the list limiter frees the memory of owners without active lists', async () => {
  const slots = new ListLimiter(1, 60_000, CLIENT_EVENTS)
  const before = await measureMemoryUsed()
  for (let i = 0; i < 20_000; i++) {
    const owner = `owner ${i}`
    assert.equal(slots.acquire(createList(owner)), undefined)
    slots.release(owner)
  }
  const left = (await measureMemoryUsed()) - before
  assert.ok(left < 20_000 * 50, `20,000 owners leave ${left} bytes`)
  assert.equal(slots.acquire(createList()), undefined)
})
