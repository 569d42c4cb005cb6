import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../src/index.ts'
import { ListSlots } from '../../src/plants/list-slots.ts'
import { listPlants, type PlantList } from '../../src/plants/listing.ts'
import { plantList } from '../support/database/plant-list.ts'
import { memoryUsed } from '../support/heap.ts'

/** A list of a client that may go. */
function listOf(owner = 'ada'): { owner: string; client: EventEmitter; go: () => void } {
  const client = new EventEmitter()
  return { owner, client, go: () => client.emit('gone') }
}

const CLIENTS = {
  isGone: () => false,
  whenGone: (client: EventEmitter, listener: () => void) => client.on('gone', listener),
}

suite('of more long lists than an owner may read at once', () => {
  test('those that wait go on in the order in which they came, without those whose clients go', async () => {
    const slots = new ListSlots(2, 60_000, CLIENTS)
    const lists = Array.from({ length: 5 }, () => listOf())
    const [first, second, third, fourth, fifth] = lists.map((list) => slots.take(list))
    assert.deepEqual([first, second], [undefined, undefined])
    lists[2]!.go()
    assert.equal(await third, false)
    const order: string[] = []
    const waiting = [fourth!.then(() => order.push('fourth')), fifth!.then(() => order.push('fifth'))]
    slots.release('ada')
    await waiting[0]
    lists[3]!.go()
    assert.deepEqual(order, ['fourth'])
    slots.release('ada')
    await waiting[1]
    slots.release('ada')
    slots.release('ada')
    assert.deepEqual([slots.take(listOf()), slots.take(listOf())], [undefined, undefined])
    const last = listOf()
    const waits = slots.take(last)
    last.go()
    assert.equal(await waits, false)
  })

  test('one that waits too long fails, and the next goes on in its place', async () => {
    const slots = new ListSlots(1, 1, CLIENTS)
    assert.equal(slots.take(listOf()), undefined)
    const reason = 'The list has waited 1 ms for others to end: maxListsPerOwner is 1.'
    await assert.rejects(slots.take(listOf())!, new StoreUnavailableError(reason))
    slots.release('ada')
    assert.equal(slots.take(listOf()), undefined)
  })

  for (const limit of [Infinity, 2400]) {
    test(`one with the limit ${limit} waits, reads its first page again, and is whole`, async () => {
      const store = memoryStore()
      for (let id = 1n; id <= 2500n; id++) void store.create('ada', { id, name: 'Fern' })
      const reads: (bigint | undefined)[] = []
      const list = plantList((request) => (reads.push(request.after), store.list('ada', request)))
      const countOf = async (change: Partial<PlantList>): Promise<number> => {
        const { body } = await listPlants({ ...list, ...change })
        let text = ''
        for await (const piece of typeof body === 'string' ? [body] : body) text += piece
        return (JSON.parse(text) as unknown[]).length
      }
      const { body } = await listPlants(list)
      const first = (body as AsyncIterable<string>)[Symbol.asyncIterator]()
      await first.next()
      const second = countOf({ limit, after: 50n })
      // Neither one of another owner waits, nor one that fits a page.
      assert.equal(await countOf({ owner: 'grace' }), 2500)
      assert.equal(await countOf({ limit: 10 }), 10)
      reads.length = 0
      await first.return?.()
      assert.equal(await second, Math.min(limit, 2450))
      assert.equal(reads[0], 50n)
    })
  }
})

test('nothing is kept of an owner whose slots have ended', async () => {
  const slots = new ListSlots(1, 60_000, CLIENTS)
  const before = await memoryUsed()
  for (let i = 0; i < 20_000; i++) {
    const owner = `owner ${i}`
    assert.equal(slots.take(listOf(owner)), undefined)
    slots.release(owner)
  }
  const left = (await memoryUsed()) - before
  assert.ok(left < 20_000 * 50, `20,000 owners leave ${left} bytes`)
  assert.equal(slots.take(listOf()), undefined)
})
