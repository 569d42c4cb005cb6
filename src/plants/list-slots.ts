import { clearTimeout, setTimeout } from '../timers.ts'
import { StoreUnavailableError } from './store.ts'

export interface LongList {
  readonly owner: string
  readonly client: unknown
}

/** What is known of the client of a list. */
export interface Clients {
  isGone(client: unknown): boolean
  whenGone(client: unknown, listener: () => void): void
}

interface OwnerLists {
  running: number
  readonly waiting: Set<() => void>
}

/** Limits how many long lists of an owner are read at once: each holds a page in memory. The others wait in order. */
export class ListSlots {
  readonly clients: Clients
  readonly #maxPerOwner: number
  readonly #timeoutMs: number
  readonly #owners = new Map<string, OwnerLists>()

  constructor(maxPerOwner: number, timeoutMs: number, clients: Clients) {
    this.#maxPerOwner = maxPerOwner
    this.#timeoutMs = timeoutMs
    this.clients = clients
  }

  /** Undefined if a slot is free, else a promise: of true once one is, or of false if the client goes before. */
  take(list: LongList): Promise<boolean> | undefined {
    const lists = this.#owners.get(list.owner) ?? { running: 0, waiting: new Set() }
    this.#owners.set(list.owner, lists)
    if (lists.running === this.#maxPerOwner) return this.#wait(lists, list)
    lists.running++
    return undefined
  }

  #wait({ waiting }: OwnerLists, { client }: LongList): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(begin)
        const reason = `maxListsPerOwner is ${this.#maxPerOwner}`
        reject(new StoreUnavailableError(`The list has waited ${this.#timeoutMs} ms for others to end: ${reason}.`))
      }, this.#timeoutMs)
      function begin(): void {
        clearTimeout(timer)
        resolve(true)
      }
      waiting.add(begin)
      this.clients.whenGone(client, () => {
        // The list may have begun long ago.
        if (!waiting.delete(begin)) return
        clearTimeout(timer)
        resolve(false)
      })
    })
  }

  release(owner: string): void {
    const lists = this.#owners.get(owner)!
    const [next] = lists.waiting
    if (next !== undefined) {
      lists.waiting.delete(next)
      next()
    } else {
      lists.running--
      if (lists.running === 0) this.#owners.delete(owner)
    }
  }
}
