import type { NewPlant } from '../../../src/plants/plant.ts'
import { found, keyedBy, listing, row, SAYS, type BrokenStore, type Row } from './sorting-store.ts'

/** Takes some owners for others. */
function mistaking(breaks: string, change: (owner: string) => string): Row {
  return row(breaks, SAYS.isFree, (store) => ({
    create: (owner, plant) => store.create(change(owner), plant),
    list: (owner, page) => store.list(change(owner), page),
    delete: (owner, id) => store.delete(change(owner), id),
  }))
}

/** Whether a text is what LIKE of SQL matches with a pattern; without escapes. */
function isLike(text: string, pattern: string): boolean {
  const escaped = pattern.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('%', '.*').replaceAll('_', '.')}$`, 's').test(text)
}

/** Deletes the first plant with an id whose owner is meant. */
function deletingOf(breaks: string, says: string, isMeant: (owner: string, asked: string) => boolean): Row {
  return row(breaks, says, (store) => ({
    delete(asked, id) {
      const kept = [...store.plants].find(([, plant]) => plant.id === id && isMeant(plant.owner, asked))
      return kept !== undefined && store.plants.delete(kept[0])
    },
  }))
}

/** Stores that take one owner for another. */
export const MISTAKEN_OWNERS: readonly BrokenStore[] = [
  ...found(
    'lists nothing for an owner who has no plants',
    listing(
      'lists null for an owner without plants',
      'must return an array. It returned null.',
      (list, page) => (list(page).length > 0 && list(page)) || null,
    ),
    row("lists everyone's plants", SAYS.own, (store) => ({
      list: (_, { limit }) => store.plantsOf(() => true).slice(0, limit),
    })),
  ),
  ...found(
    'keeps owners apart, whatever their names',
    keyedBy('joins owner and id without a separator', SAYS.isFree, (owner, id) => owner + String(id)),
    keyedBy('compares owners without regard to case', SAYS.isFree, (owner, id) => {
      return JSON.stringify([owner.toLowerCase(), String(id)])
    }),
    mistaking('trims owners', (owner) => owner.trim()),
    mistaking('normalises owners', (owner) => owner.normalize()),
    mistaking('cuts owners at 500 characters', (owner) => owner.slice(0, 500)),
    mistaking('skips a byte order mark of owners', (owner) => new TextDecoder().decode(Buffer.from(owner))),
    mistaking('takes a backslash of owners for an escape', (owner) => owner.replace(/\\(.)/g, '$1')),
    mistaking('takes owners for paths', (owner) => owner.replace(/\/.*/, '')),
    mistaking('keeps three bytes of a character of owners', (owner) => owner.replace(/[^\0-\uffff]/gu, '?')),
    row(
      'keeps owners as the names of members of an object',
      "create('__proto__', { id: 1n, name: '__proto__' }) must not fail.",
      () => {
        const owners: Record<string, Map<bigint, NewPlant>> = {}
        return {
          create(owner, plant) {
            const plants = (owners[owner] ??= new Map())
            if (plants.has(plant.id)) return false
            plants.set(plant.id, plant)
            return true
          },
          list: (owner) => [...(owners[owner]?.values() ?? [])],
        }
      },
    ),
    row('takes the owner of a list for a pattern', SAYS.ascending, (store) => ({
      list: (owner) => store.plantsOf((other) => isLike(other, owner)),
    })),
    row('lists without regard to the case of the owner', SAYS.ascending, (store) => ({
      list: (owner) => store.plantsOf((other) => other.toLowerCase() === owner.toLowerCase()),
    })),
  ),
  ...found(
    'deletes no plant of another owner',
    deletingOf('takes the owner of a delete for a pattern', SAYS.own, isLike),
    deletingOf('deletes whoever owns it', SAYS.isAbsent, () => true),
    row('says that it deleted, and did not', SAYS.own, (store) => ({ delete: (owner, id) => store.has(owner, id) })),
  ),
]
