import { SortingStore, type BrokenStore } from './sorting-store.ts'

/** Stores whose ping or close fails. */
export const WRONG_LIFE_CYCLES: readonly BrokenStore[] = [
  {
    breaks: 'is never in reach',
    Store: class extends SortingStore {
      override ping(): Promise<void> {
        return Promise.reject(new Error('Out of reach'))
      }
    },
    fails: 'settles a ping, if it takes one',
    says: 'must not fail.',
  },
  {
    breaks: 'closes once if it has plants',
    Store: class extends SortingStore {
      #isOpen = true

      override close(): void {
        if (!this.#isOpen && this.plants.size > 0) throw new Error('Closed already')
        this.#isOpen = false
      }
    },
    fails: 'may be closed twice',
    says: 'must not fail.',
  },
  {
    breaks: 'closes once',
    Store: class extends SortingStore {
      #isOpen = true

      override close(): void {
        if (!this.#isOpen) throw new Error('Closed already')
        this.#isOpen = false
      }
    },
    fails: 'may be closed twice',
    says: 'must not fail.',
  },
]
