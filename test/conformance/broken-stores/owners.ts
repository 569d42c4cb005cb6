import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest } from '../../../src/plants/store.ts'
import { keyedBy, listing, SortingStore, type BrokenStore } from './sorting-store.ts'

/** Takes some owners for others. */
function mistaking(change: (owner: string) => string): Pick<BrokenStore, 'Store' | 'fails' | 'says'> {
  return {
    Store: class extends SortingStore {
      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        return super.create(change(owner), plant)
      }

      override list(owner: string, page: PageRequest): readonly NewPlant[] {
        return super.list(change(owner), page)
      }

      override delete(owner: string, id: bigint): boolean | Promise<boolean> {
        return super.delete(change(owner), id)
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  }
}

/** Whether a text is what LIKE of SQL matches with a pattern; without escapes. */
function isLike(text: string, pattern: string): boolean {
  const escaped = pattern.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('%', '.*').replaceAll('_', '.')}$`, 's').test(text)
}

/** Stores that take one owner for another. */
export const MISTAKEN_OWNERS: readonly BrokenStore[] = [
  {
    breaks: 'lists null for an owner without plants',
    Store: listing((list, page) => (list(page).length === 0 ? null : list(page))),
    fails: 'lists nothing for an owner who has no plants',
    says: 'must return an array. It returned null.',
  },
  {
    breaks: "lists everyone's plants",
    Store: class extends SortingStore {
      override list(_owner: string, { limit }: PageRequest): readonly NewPlant[] {
        return [...this.plants.values()].slice(0, limit)
      }
    },
    fails: 'lists nothing for an owner who has no plants',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'joins owner and id without a separator',
    Store: keyedBy((owner, id) => owner + String(id)),
    fails: 'keeps owners apart, whatever their names',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'compares owners without regard to case',
    Store: keyedBy((owner, id) => JSON.stringify([owner.toLowerCase(), String(id)])),
    fails: 'keeps owners apart, whatever their names',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  { breaks: 'trims owners', ...mistaking((owner) => owner.trim()) },
  { breaks: 'normalises owners', ...mistaking((owner) => owner.normalize()) },
  { breaks: 'cuts owners at 500 characters', ...mistaking((owner) => owner.slice(0, 500)) },
  {
    breaks: 'skips a byte order mark of owners',
    ...mistaking((owner) => new TextDecoder().decode(Buffer.from(owner))),
  },
  { breaks: 'takes a backslash of owners for an escape', ...mistaking((owner) => owner.replace(/\\(.)/g, '$1')) },
  { breaks: 'takes owners for paths', ...mistaking((owner) => owner.replace(/\/.*/, '')) },
  {
    breaks: 'keeps three bytes of a character of owners',
    ...mistaking((owner) => owner.replace(/[^\0-\uffff]/gu, '?')),
  },
  {
    breaks: 'keeps owners as the names of members of an object',
    Store: class extends SortingStore {
      readonly #owners: Record<string, Map<bigint, NewPlant>> = {}

      override create(owner: string, plant: NewPlant): boolean {
        const plants = (this.#owners[owner] ??= new Map())
        if (plants.has(plant.id)) return false
        plants.set(plant.id, plant)
        return true
      }

      override list(owner: string): readonly NewPlant[] {
        return [...(this.#owners[owner] ?? new Map<bigint, NewPlant>()).values()]
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: "create('__proto__', { id: 1n, name: '__proto__' }) must not fail.",
  },
  {
    breaks: 'takes the owner of a list for a pattern',
    Store: class extends SortingStore {
      override list(owner: string): readonly NewPlant[] {
        return [...this.plants.values()].filter((plant) => isLike(plant.owner, owner))
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'takes the owner of a delete for a pattern',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        const found = [...this.plants].find(([, plant]) => plant.id === id && isLike(plant.owner, owner))
        return found !== undefined && this.plants.delete(found[0])
      }
    },
    fails: 'deletes no plant of another owner',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'lists without regard to the case of the owner',
    Store: class extends SortingStore {
      override list(owner: string): readonly NewPlant[] {
        return [...this.plants.values()].filter((plant) => plant.owner.toLowerCase() === owner.toLowerCase())
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'says that it deleted, and did not',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        return this.plants.has(this.key(owner, id))
      }
    },
    fails: 'deletes no plant of another owner',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'deletes whoever owns it',
    Store: class extends SortingStore {
      override delete(_owner: string, id: bigint): boolean {
        const found = [...this.plants].find(([, plant]) => plant.id === id)
        return found !== undefined && this.plants.delete(found[0])
      }
    },
    fails: 'deletes no plant of another owner',
    says: 'must return false: this owner has no plant with this id, whatever others have.',
  },
]
