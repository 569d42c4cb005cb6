import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPlantClient } from '../../src/client/plant-client.ts'
import { memoryStore } from '../../src/index.ts'
import { overrideStore } from '../support/override-store.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'
import { getPort, servePlants } from '../support/service.ts'

const PLANT_COUNT = 1_000_000
const MAX_BYTES = 10 * 2 ** 20

test('listing a million plants takes at most 10 MiB of memory', async (t) => {
  // The store generates the plants while listing them, so that the store itself uses no memory.
  const store = overrideStore(memoryStore(), {
    list(_owner, { limit, after = 0n }) {
      const count = Math.min(limit, PLANT_COUNT - Number(after))
      const ids = Array.from({ length: count }, (_, index) => after + BigInt(index) + 1n)
      return { plants: ids.map((id) => ({ id, name: `Plant ${id}` })), hasMore: Number(after) + count < PLANT_COUNT }
    },
  })
  const client = createPlantClient({
    url: `http://127.0.0.1:${getPort(await servePlants(t, { store }))}`,
    token: 'ada',
  })
  let [lastId, before, max] = [0n, 0, 0]
  for await (const { id, name } of client.list()) {
    assert.ok(id === ++lastId && name === `Plant ${id}`)
    if (id % 100_000n !== 50_000n) continue
    const bytes = await measureMemoryUsed()
    // Start measuring after the first pages, during which the code of the client and the service is compiled.
    if (before === 0) before = bytes
    max = Math.max(max, bytes - before)
  }
  assert.equal(lastId, BigInt(PLANT_COUNT))
  t.diagnostic(`${max} bytes`)
  assert.ok(max <= MAX_BYTES, `reading the list took ${max} bytes`)
})
