import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../src/index.ts'
import { ListSlots } from '../../src/plants/list-slots.ts'
import { listPlants, type ListQuery, type PlantSource } from '../../src/plants/listing.ts'
import { plantSource } from '../support/database/plant-source.ts'
import { memoryUsed } from '../support/heap.ts'

/** A list whose client has gone once it emits `gone`. */
class Client extends EventEmitter {
  readonly owner: string

  constructor(owner = 'ada') {
    super()
    this.owner = owner
  }

  whenGone(listener: () => void): void {
    this.on('gone', listener)
  }
}

suite('of more long lists than an owner may read at once', () => {
  test('those that wait go on in the order in which they came, without those whose clients go', async () => {
    const slots = new ListSlots(2, 60_000)
    const clients = Array.from({ length: 5 }, () => new Client())
    const [first, second, third, fourth, fifth] = clients.map((client) => slots.take(client))
    assert.deepEqual([first, second], [undefined, undefined])
    clients[2]!.emit('gone')
    assert.equal(await third, false)
    const order: string[] = []
    const waiting = [fourth!.then(() => order.push('fourth')), fifth!.then(() => order.push('fifth'))]
    slots.release('ada')
    await waiting[0]
    clients[3]!.emit('gone')
    assert.deepEqual(order, ['fourth'])
    slots.release('ada')
    await waiting[1]
    slots.release('ada')
    slots.release('ada')
    assert.deepEqual([slots.take(new Client()), slots.take(new Client())], [undefined, undefined])
    const last = new Client()
    const waits = slots.take(last)
    last.emit('gone')
    assert.equal(await waits, false)
  })

  test('one that waits too long fails, and the next goes on in its place', async () => {
    const slots = new ListSlots(1, 1)
    assert.equal(slots.take(new Client()), undefined)
    const reason = 'The list has waited 1 ms for others to end: maxListsPerOwner is 1.'
    await assert.rejects(slots.take(new Client())!, new StoreUnavailableError(reason))
    slots.release('ada')
    assert.equal(slots.take(new Client()), undefined)
  })

  for (const limit of [Infinity, 2400]) {
    test(`one with the limit ${limit} waits, reads its first page again, and is whole`, async () => {
      const store = memoryStore()
      for (let id = 1n; id <= 2500n; id++) void store.create('ada', { id, name: 'Fern' })
      const reads: (bigint | undefined)[] = []
      const source = plantSource((request) => (reads.push(request.after), store.list('ada', request)))
      const whole = { limit: Infinity, after: undefined, includesId: false }
      const countOf = async (from: PlantSource, query: Partial<ListQuery>): Promise<number> => {
        const { body } = await listPlants(from, { ...whole, ...query })
        let text = ''
        for await (const piece of typeof body === 'string' ? [body] : body) text += piece
        return (JSON.parse(text) as unknown[]).length
      }
      const { body } = await listPlants(source, whole)
      const first = (body as AsyncIterable<string>)[Symbol.asyncIterator]()
      await first.next()
      const second = countOf(source, { limit, after: 50n })
      // Neither one of another owner waits, nor one that fits a page.
      assert.equal(await countOf({ ...source, owner: 'grace' }, {}), 2500)
      assert.equal(await countOf(source, { limit: 10 }), 10)
      reads.length = 0
      await first.return?.()
      assert.equal(await second, Math.min(limit, 2450))
      assert.equal(reads[0], 50n)
    })
  }
})

test('nothing is kept of an owner whose slots have ended', async () => {
  const slots = new ListSlots(1, 60_000)
  const before = await memoryUsed()
  for (let i = 0; i < 20_000; i++) {
    const client = new Client(`owner ${i}`)
    assert.equal(slots.take(client), undefined)
    slots.release(client.owner)
  }
  const left = (await memoryUsed()) - before
  assert.ok(left < 20_000 * 50, `20,000 owners leave ${left} bytes`)
  assert.equal(slots.take(new Client()), undefined)
})
