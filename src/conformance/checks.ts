import assert from 'node:assert/strict'
import { setImmediate as nextTick } from 'node:timers/promises'
import { PLANT_TEXTS, TEXT_NAMES, type NewPlant, type Plant } from '../plants/plant.ts'
import { isUnavailable, MAX_PAGE } from '../plants/store.ts'
import { ALL_CHARACTERS, EDGE_CASE_IDS, EDGE_CASE_OWNERS, EDGE_CASE_TEXTS, LONG_TEXTS } from './edge-cases.ts'
import { quote, type TestedStore } from './tested-store.ts'

/** @param whileBroken runs a function while the store's writes fail */
type Check = (store: TestedStore, whileBroken: <T>(run: () => Promise<T>) => Promise<T>) => Promise<unknown>

const owner = 'owner'
const plantsOf = (ids: readonly bigint[]): NewPlant[] => ids.map((id) => plantOf(id, (name) => `${name} ${id}`))
const idsBelow = (count: number): bigint[] => Array.from({ length: count }, (_, i) => BigInt(i))
const plantsNamed = (...texts: string[]): NewPlant[] =>
  texts.map((text, i) => plantOf(BigInt(i), (_, isRequired) => (isRequired || i % 2 === 1 ? text : undefined)))

function plantOf(id: bigint, textOf: (name: string, isRequired: boolean) => string | undefined): NewPlant {
  const texts = TEXT_NAMES.map((name) => [name, textOf(name, PLANT_TEXTS[name].isRequired)])
  return { id, ...(Object.fromEntries(texts) as Plant) }
}

export const CHECKS: Readonly<Record<string, Check>> = {
  async 'returns created plants with their id, name and tag, or without a tag'(store) {
    const plants = [{ id: 1n, name: 'Fern' }, { id: 2n, name: 'Fern', tag: '' }, ...plantsOf([3n])]
    await store.createAll(owner, [...plants, { id: 4n, name: 'Fern', tag: undefined }])
    await store.list(owner, [...plants, { id: 4n, name: 'Fern' }])
  },

  async 'create and delete return false if they change nothing'(store) {
    await store.createAll(owner, plantsOf([1n, 2n, 3n]))
    await store.create(owner, { id: 2n, name: 'second' }, false)
    await store.list(owner, plantsOf([1n, 2n, 3n]))
    await store.delete(owner, 2n)
    await store.delete(owner, 2n, false)
    await store.list(owner, plantsOf([1n, 3n]))
  },

  async 'separates owners with similar names'(store) {
    for (const owner of EDGE_CASE_OWNERS) await store.createAll(owner, plantsNamed(owner, owner))
    for (const owner of EDGE_CASE_OWNERS) await store.list(owner, plantsNamed(owner, owner))
    await store.list('another', [])
    await store.delete('another', 0n, false)
    for (const owner of EDGE_CASE_OWNERS) await store.delete(owner, 0n)
    // In reverse order: a store that confuses two owners might always delete the plant that was created first.
    for (const owner of EDGE_CASE_OWNERS.toReversed()) {
      await store.delete(owner, 1n)
      await store.list(owner, [])
    }
  },

  async 'preserves ids exactly, and lists them in ascending order'(store) {
    const remaining = plantsOf(EDGE_CASE_IDS)
    while (remaining.length > 0) await store.createAll(owner, [...remaining.splice(0, 1), ...remaining.splice(-1)])
    for (const [index, id] of EDGE_CASE_IDS.entries()) {
      await store.list(owner, plantsOf(EDGE_CASE_IDS.slice(index)))
      await store.delete(owner, id)
    }
  },

  async 'lists at most limit plants'(store) {
    const plants = plantsOf(idsBelow(MAX_PAGE + 1))
    await Promise.all(plants.map((plant) => store.create(owner, plant)))
    for (const limit of [1, 2, MAX_PAGE - 1, MAX_PAGE]) await store.list(owner, plants, { limit })
  },

  async 'ends a page before limit only if its strings add up to maxBytes'(store) {
    const texts = ['fern', '楓'.repeat(20), '\n'.repeat(60), '"'.repeat(60), 'x'.repeat(3000)]
    const plants = plantsNamed(...texts, ...texts.toReversed())
    await store.createAll(owner, plants)
    for (const maxBytes of [1, 5, 60, 500, 5000]) {
      for (let start = 0; start < plants.length;) {
        const after = plants[start - 1]?.id
        start += await store.list(owner, plants.slice(start), { limit: 1 + (maxBytes % 7), maxBytes, after })
      }
    }
  },

  async 'preserves strings exactly'(store) {
    const texts = [...EDGE_CASE_TEXTS, ...LONG_TEXTS, ...ALL_CHARACTERS]
    const plants = plantsNamed(...texts.flatMap((text) => [text, text]))
    await store.createAll(owner, plants)
    await store.list(owner, plants)
  },

  'behaves like a Map in 1,000 random operations': compareWithMap,

  async 'lets exactly one of 50 concurrent calls with the same id succeed'(store) {
    for (const [method, argument] of Object.entries({ create: { id: 1n, name: 'Fern' }, delete: 1n })) {
      const results = await Promise.all(Array.from({ length: 50 }, () => store.call(method, owner, argument)))
      const count = results.filter(Boolean).length
      assert.equal(count, 1, `${count} of 50 concurrent ${method} calls with the same id returned true, not one.`)
    }
  },

  async 'returns the right result for each of 300 concurrent calls of 10 owners'(store) {
    const plants = plantsOf(idsBelow(30))
    const owners = Array.from({ length: 10 }, (_, i) => `owner ${i}`)
    const exists = ({ id }: NewPlant): boolean => id % 3n === 0n
    const isCreated = ({ id }: NewPlant): boolean => id % 2n === 0n
    await Promise.all(owners.map((owner) => store.createAll(owner, plants.filter(exists))))
    const write = (owner: string, plant: NewPlant): Promise<void> =>
      isCreated(plant) ? store.create(owner, plant, !exists(plant)) : store.delete(owner, plant.id, exists(plant))
    await Promise.all(plants.flatMap((plant) => owners.map((owner) => write(owner, plant))))
    await Promise.all(owners.map((owner) => store.list(owner, plants.filter(isCreated))))
  },

  async 'lists the result of every completed write while other lists are running'(store) {
    const plants = plantsOf(idsBelow(20))
    const lists: Promise<unknown>[] = []
    const startList = (): unknown => lists.push(store.call('list', owner, { limit: MAX_PAGE, maxBytes: 2 ** 30 }))
    for (const [i, plant] of plants.entries()) {
      startList()
      const created = store.create(owner, plant).then(() => true)
      while (!(await Promise.race([created, nextTick(false)]))) startList()
      await store.list(owner, plants.slice(0, i + 1))
    }
    await Promise.all(lists)
  },

  'ping succeeds, if the store implements ping': (store) => store.call('ping'),

  // The test itself closes its store for the second time.
  'close can be called twice': (store) => store.call('close'),
}

async function compareWithMap(store: TestedStore): Promise<void> {
  // The generator of Park and Miller, so that every run makes the same calls.
  let state = 1
  const pick = <T>(choices: readonly T[]): T => choices[(state = (state * 16_807) % 0x7fffffff) % choices.length]!
  const owners = ['a', 'b', 'ab'].map((owner) => ({ owner, plants: new Map<bigint, NewPlant>() }))
  for (let step = 1; step <= 1000; step++) {
    const { owner, plants } = pick(owners)
    const id = pick(EDGE_CASE_IDS)
    const following = EDGE_CASE_IDS.filter((other) => other > id).flatMap((other) => plants.get(other) ?? [])
    const text = EDGE_CASE_TEXTS[step % EDGE_CASE_TEXTS.length]
    const plant = plantOf(id, (_, isRequired) => (isRequired || step % 3 > 0 ? text : undefined))
    const method = pick(['create', 'delete', 'list'])
    if (method === 'list') await store.list(owner, following, { after: id, limit: pick([1, 2, 5, 10]) })
    else if (method === 'delete') await store.delete(owner, id, plants.delete(id))
    else {
      await store.create(owner, plant, !plants.has(id))
      plants.set(id, plants.get(id) ?? plant)
    }
  }
}

const EXISTING_PLANTS = plantsOf(idsBelow(20))
const NEW_PLANTS = plantsOf(idsBelow(40).slice(20))

/** Checks for a store whose writes fail temporarily. */
export const FAILURE_CHECKS: Readonly<Record<string, Check>> = {
  async 'changes nothing while writes fail, and ping rejects, if the store implements ping'(store, whileBroken) {
    await store.createAll(owner, EXISTING_PLANTS)
    const [created, deleted] = await whileBroken(async () => {
      const results = [
        await requireFailures(NEW_PLANTS, (plant) => store.call('create', owner, plant)),
        await requireFailures(EXISTING_PLANTS, ({ id }) => store.call('delete', owner, id)),
      ] as const
      if (store.store.ping !== undefined)
        await assert.rejects(store.call('ping'), 'ping() must reject while writes fail.')
      return results
    })
    await store.call('ping')
    for (const { id } of created) await store.call('delete', owner, id)
    for (const plant of deleted) await store.call('create', owner, plant)
    await store.list(owner, EXISTING_PLANTS)
    await store.createAll(owner, NEW_PLANTS)
    for (const { id } of EXISTING_PLANTS) await store.delete(owner, id)
    await store.list(owner, NEW_PLANTS)
  },
}

/** Requires that each write fails with a StoreUnavailableError. Returns the plants whose outcome is unknown. */
async function requireFailures(plants: NewPlant[], write: (plant: NewPlant) => Promise<unknown>): Promise<NewPlant[]> {
  const outcomes = await Promise.allSettled(plants.map(write))
  return plants.filter((plant, i) => {
    const outcome = outcomes[i]!
    if (outcome.status === 'fulfilled')
      return assert.fail(`A write of ${quote(plant)} returned ${quote(outcome.value)} after breakWrites.`)
    const { message, cause } = outcome.reason as Error
    return isUnavailable(cause) ? cause.isOutcomeUnknown : assert.fail(`${message} (not a StoreUnavailableError)`)
  })
}
