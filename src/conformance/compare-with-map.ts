import type { NewPlant } from '../plants/plant.ts'
import { AWKWARD_IDS, AWKWARD_TEXTS } from './awkward-values.ts'
import { assertCreate, assertDelete, assertList } from './steps.ts'
import type { WatchedStore } from './watched-store.ts'

export async function compareWithMap(store: WatchedStore, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(choices: readonly T[]): T => choices[random(choices.length)] as T
  const owners = ['a', 'b', 'ab'].map((owner) => ({ owner, plants: new Map<bigint, NewPlant>() }))

  for (let step = 1; step <= 2000; step++) {
    const { owner, plants } = pick(owners)
    const operate = pick([create, remove, list])
    try {
      await operate(owner, plants, pick(AWKWARD_IDS))
    } catch (cause) {
      throw new Error(`Step ${step} with seed ${seed}: ${(cause as Error).message}`, { cause })
    }
  }

  async function create(owner: string, plants: Map<bigint, NewPlant>, id: bigint): Promise<void> {
    const plant = { id, name: pick(AWKWARD_TEXTS), tag: pick([undefined, ...AWKWARD_TEXTS]) }
    await assertCreate(store, owner, plant, !plants.has(id))
    if (!plants.has(id)) plants.set(id, plant)
  }

  function remove(owner: string, plants: Map<bigint, NewPlant>, id: bigint): Promise<void> {
    return assertDelete(store, owner, id, plants.delete(id))
  }

  function list(owner: string, plants: Map<bigint, NewPlant>, after: bigint): Promise<void> {
    const limit = 1 + random(10)
    const greater = AWKWARD_IDS.filter((id) => id > after).flatMap((id) => plants.get(id) ?? [])
    return assertList(store, owner, greater.slice(0, limit), { limit, after })
  }
}

function seededRandom(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
}
