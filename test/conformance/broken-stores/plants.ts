import type { NewPlant } from '../../../src/plants/plant.ts'
import { changingTaken, found, row, SAYS, type BrokenStore, type Row } from './sorting-store.ts'

/** Says something to each delete, and carries it out. */
function answeringDeletes(
  breaks: string,
  says: string,
  answer: (isDeleted: boolean, hasPlants: boolean) => boolean,
): Row {
  return row(breaks, says, (store) => ({
    delete(owner, id) {
      const hasPlants = store.plantsOf((other) => other === owner).length > 0
      return answer(store.delete(owner, id), hasPlants)
    },
  }))
}

/** Changes a plant that has the id of one that was deleted. */
function remembering(breaks: string, says: string, change: (plant: NewPlant, deleted: NewPlant) => NewPlant): Row {
  return row(breaks, says, (store) => {
    const deleted = new Map<string, NewPlant>()
    return {
      create: (owner, plant) => store.create(owner, change(plant, deleted.get(store.key(owner, plant.id)) ?? plant)),
      delete(owner, id) {
        const key = store.key(owner, id)
        const plant = store.plants.get(key)
        if (plant !== undefined) deleted.set(key, plant)
        return store.plants.delete(key)
      },
    }
  })
}

/** Stores whose create or delete does something else than it says. */
export const WRONG_PLANTS: readonly BrokenStore[] = [
  ...found(
    'returns false if the id is taken, and keeps the first plant',
    row(
      'says true to a second create',
      "create('owner', { id: 1n, name: 'second', tag: 'second' }) must return false: this owner has a plant with this id. It returned true.",
      (store) => ({ create: (owner, plant) => store.create(owner, plant) || true }),
    ),
    row(
      'says true to a second create without a tag',
      "create('owner', { id: 2n, name: 'second' }) must return false: this owner has a plant with this id. It returned true.",
      (store) => ({ create: (owner, plant) => store.create(owner, plant) || plant.tag === undefined }),
    ),
    changingTaken('keeps the second plant of an id', SAYS.names, (_, plant) => plant),
    changingTaken('adds the tag of the second plant of an id', SAYS.noTag, (kept, { tag }) => {
      return { ...kept, tag: kept.tag ?? tag }
    }),
    changingTaken('takes away the tag that the second plant of an id lacks', SAYS.tags, (kept, { tag }) => {
      return { ...kept, tag: tag === undefined ? tag : kept.tag }
    }),
  ),
  ...found(
    'deletes a plant, and only that one',
    row('deletes all plants of the owner', SAYS.all, (store) => ({
      delete(owner, id) {
        const isThere = store.has(owner, id)
        if (isThere) for (const [key, plant] of store.plants) if (plant.owner === owner) store.plants.delete(key)
        return isThere
      },
    })),
    answeringDeletes(
      'says false to every delete',
      "delete('owner', 2n) must return true: this owner has a plant with this id. It returned false.",
      () => false,
    ),
  ),
  ...found(
    'returns false if there is nothing to delete',
    answeringDeletes('says true to every delete', SAYS.isAbsent, () => true),
    row('says true to a delete of an owner whom it has never seen', `delete('owner', 1n) ${SAYS.isAbsent}`, (store) => {
      const seen = new Set<string>()
      return {
        create: (owner, plant) => (seen.add(owner), store.create(owner, plant)),
        delete: (owner, id) => !seen.has(owner) || store.delete(owner, id),
      }
    }),
    answeringDeletes(
      'says true to a delete of an owner who has plants',
      `delete('owner', 2n) ${SAYS.isAbsent}`,
      (_, hasPlants) => hasPlants,
    ),
    row('says true to a second delete', `delete('owner', 1n) ${SAYS.isAbsent}`, (store) => {
      const used = new Set<string>()
      return {
        delete(owner, id) {
          if (store.delete(owner, id)) used.add(store.key(owner, id))
          return used.has(store.key(owner, id))
        },
      }
    }),
    answeringDeletes('answers with 1 and 0', SAYS.isAbsent, (isDeleted) => Number(isDeleted) as unknown as boolean),
  ),
  ...found(
    'takes an id anew once its plant is deleted',
    row('never takes an id again', SAYS.isFree, (store) => {
      const used = new Set<string>()
      return {
        create(owner, plant) {
          const key = store.key(owner, plant.id)
          if (used.has(key)) return false
          used.add(key)
          return store.create(owner, plant)
        },
      }
    }),
    remembering(
      'brings back what was deleted',
      `${SAYS.names} From character 0 on, that of 1n is "first"…, and must be "second"….`,
      (_, deleted) => deleted,
    ),
    remembering('brings back the tag of what was deleted', `${SAYS.noTag} That of 1n is 'first'.`, (plant, { tag }) => {
      return { tag, ...plant }
    }),
  ),
  ...found(
    'does what a Map does, through 2,000 random operations',
    row(
      'forgets a plant after some time',
      `Step 1445 with seed 1: list('ab', { limit: 10, maxBytes: 1073741824, after: -2147483649n }) ${SAYS.all} -2147483648n is missing.`,
      (store) => {
        let operations = 0
        return {
          list(owner, page) {
            if (++operations > 500) store.plants.clear()
            return store.list(owner, page)
          },
        }
      },
    ),
  ),
]
