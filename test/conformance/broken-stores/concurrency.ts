import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Page, PageRequest, Store } from '../../../src/plants/store.ts'
import { changingTaken, found, row, SAYS } from './sorting-store.ts'
import type { BrokenStore, Change, SortingStore } from './sorting-store.ts'

type UnderWay = Map<string, Promise<Page>>

/** Has lists share one read if their keys are the same, and it is under way. */
function sharing(
  keyOf: (owner: string, page: PageRequest) => string = (owner, { limit, after }) => `${owner} ${limit} ${after}`,
  change: (store: SortingStore, underWay: UnderWay) => Partial<Store> = () => ({}),
): Change {
  return (store) => {
    const underWay: UnderWay = new Map()
    async function read(key: string, owner: string, page: PageRequest): Promise<Page> {
      const plants = store.list(owner, page)
      await nextTurn()
      underWay.delete(key)
      return plants
    }
    return {
      list(owner, page) {
        const key = keyOf(owner, page)
        const shared = underWay.get(key) ?? read(key, owner, page)
        underWay.set(key, shared)
        return shared
      },
      ...change(store, underWay),
    }
  }
}

/** Does something for the owner of the first of those that wait together. */
function forFirst<What>(
  act: (store: SortingStore, owner: string, first: string, what: What) => boolean,
  store: SortingStore,
): (owner: string, what: What) => Promise<boolean> {
  let waiting: string | undefined
  return async (owner, what) => {
    const first = (waiting ??= owner)
    await nextTurn()
    waiting = undefined
    return act(store, owner, first, what)
  }
}

/** Stores that confuse what is asked at the same time. */
export const WRONG_AT_THE_SAME_TIME: readonly BrokenStore[] = [
  ...found(
    'creates an id once, however many ask at the same time',
    row(
      'looks, waits, and then creates',
      'Of 50 calls of create for one id at the same time, one must return true and the others false.',
      (store) => ({
        async create(owner, plant) {
          if (store.has(owner, plant.id)) return false
          await nextTurn()
          store.plants.set(store.key(owner, plant.id), { ...plant, owner })
          return true
        },
      }),
    ),
    row(
      'says nothing to those who create too late',
      'one must return true and the others false. 1 returned true.',
      (store) => ({ create: (owner, plant) => (store.create(owner, plant) || undefined) as boolean }),
    ),
    changingTaken('tells the first of many that it was created, and keeps the last', SAYS.names, (_, plant) => plant),
  ),
  ...found(
    'deletes a plant once, however many ask at the same time',
    row(
      'looks, waits, and then deletes',
      'Of 50 calls of delete for one id at the same time, one must return true and the others false.',
      (store) => ({
        async delete(owner, id) {
          if (!store.has(owner, id)) return false
          await nextTurn()
          store.delete(owner, id)
          return true
        },
      }),
    ),
    row('tells one of many that it was deleted, and keeps it', SAYS.own, (store) => {
      const deleted = new Set<string>()
      return {
        delete(owner, id) {
          const isFirst = !deleted.has(store.key(owner, id))
          deleted.add(store.key(owner, id))
          return isFirst && store.has(owner, id)
        },
      }
    }),
  ),
  ...found(
    'gives each of many operations at the same time its own result',
    row('copies its plants, waits, and then puts the copy in their place', SAYS.all, (store) => ({
      async create(owner, plant) {
        const copy = [...store.plants]
        const isTaken = store.has(owner, plant.id)
        await nextTurn()
        if (isTaken) return false
        store.plants.clear()
        for (const [key, kept] of copy) store.plants.set(key, kept)
        return store.create(owner, plant)
      },
    })),
    row('deletes only the first plant of those that are to go at the same time', SAYS.own, (store) => {
      let isBusy = false
      return {
        async delete(owner, id) {
          const [isThere, isFirst] = [store.has(owner, id), !isBusy]
          isBusy = true
          await nextTurn()
          isBusy = false
          if (isFirst) store.delete(owner, id)
          return isThere
        },
      }
    }),
    row('answers what waits together with the answer of the last', SAYS.isFree, (store) => {
      let last = false
      async function together(answer: boolean): Promise<boolean> {
        last = answer
        await nextTurn()
        return last
      }
      return {
        create: (owner, plant) => together(store.create(owner, plant)),
        delete: (owner, id) => together(store.delete(owner, id)),
      }
    }),
  ),
  ...found(
    'keeps owners apart that ask at the same time',
    row('deletes of all owners that wait together all ids that they want to delete', SAYS.all, (store) => {
      const waiting: { owner: string; id: bigint }[] = []
      return {
        async delete(owner, id) {
          const isThere = store.has(owner, id)
          waiting.push({ owner, id })
          await nextTurn()
          const group = waiting.splice(0)
          for (const { owner } of group) for (const { id } of group) store.delete(owner, id)
          return isThere
        },
      }
    }),
    row('creates what waits together for the owner of the first', SAYS.isFree, (store) => ({
      create: forFirst((store, owner, first, plant) => {
        return store.create(store.has(owner, plant.id) ? owner : first, plant)
      }, store),
    })),
    row('deletes what waits together for the owner of the first', SAYS.isThere, (store) => ({
      delete: forFirst((store, _, first, id) => store.delete(first, id), store),
    })),
    row(
      'gives all who list at the same time the list of the first',
      `list('owner 1', { limit: 1000, maxBytes: 1073741824, after: undefined }) ${SAYS.names}`,
      sharing(() => ''),
    ),
  ),
  ...found(
    'gives each of many lists at the same time its own page',
    row(
      'gives all who list at the same time the list with the limit and the after of the first',
      SAYS.all,
      sharing((owner) => owner),
    ),
    row(
      'gives all who list at the same time the list with the after of the first',
      SAYS.beyond,
      sharing((owner, { limit }) => `${owner} ${limit}`),
    ),
    row(
      'gives all who list at the same time the list with the limit of the first',
      SAYS.all,
      sharing((owner, { after }) => `${owner} ${after}`),
    ),
  ),
  ...found(
    'lists what was created and deleted before, while others list too',
    row('lets a list share one that began before a plant was created', `${SAYS.all} 0n is missing.`, sharing()),
    row(
      'lets a list share one that began before a plant was deleted',
      `${SAYS.own} One is { id: 0n, name: 'Plant 0', tag: 'Tag 0', owner: 'owner' }.`,
      sharing(undefined, (store, underWay) => ({
        create(owner, plant) {
          underWay.clear()
          return store.create(owner, plant)
        },
      })),
    ),
    row(
      'lets a list share one that began while a plant was created',
      `${SAYS.all} 0n is missing.`,
      sharing(undefined, (store) => ({
        async create(owner, plant) {
          for (let turns = 5; turns > 0; turns--) await nextTurn()
          return store.create(owner, plant)
        },
      })),
    ),
  ),
]
