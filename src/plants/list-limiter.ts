import { clearTimeout, setTimeout } from '../timers.ts'
import { StoreUnavailableError } from './store.ts'

export interface ListContext {
  readonly owner: string
  readonly client: unknown
}

/** What is known of the client of a list. */
export interface ClientMonitor {
  isClosed(client: unknown): boolean
  onClose(client: unknown, listener: () => void): void
}

interface OwnerQueue {
  activeCount: number
  readonly waiters: Set<() => void>
}

/** Limits how many long lists of an owner are read at once: each holds a page in memory. The others wait in order. */
export class ListLimiter {
  readonly clients: ClientMonitor
  readonly #maxPerOwner: number
  readonly #timeoutMs: number
  readonly #queues = new Map<string, OwnerQueue>()

  constructor(maxPerOwner: number, timeoutMs: number, clients: ClientMonitor) {
    this.#maxPerOwner = maxPerOwner
    this.#timeoutMs = timeoutMs
    this.clients = clients
  }

  /** Undefined if a slot is free, else a promise: of true once one is, or of false if the client goes before. */
  acquire(list: ListContext): Promise<boolean> | undefined {
    const queue = this.#queues.get(list.owner) ?? { activeCount: 0, waiters: new Set() }
    this.#queues.set(list.owner, queue)
    if (queue.activeCount === this.#maxPerOwner) return this.#waitForSlot(queue, list)
    queue.activeCount++
    return undefined
  }

  #waitForSlot({ waiters }: OwnerQueue, { client }: ListContext): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiters.delete(grantSlot)
        const reason = `maxListsPerOwner is ${this.#maxPerOwner}`
        reject(new StoreUnavailableError(`The list has waited ${this.#timeoutMs} ms for others to end: ${reason}.`))
      }, this.#timeoutMs)
      function grantSlot(): void {
        clearTimeout(timer)
        resolve(true)
      }
      waiters.add(grantSlot)
      this.clients.onClose(client, () => {
        // The list may have begun long ago.
        if (!waiters.delete(grantSlot)) return
        clearTimeout(timer)
        resolve(false)
      })
    })
  }

  release(owner: string): void {
    const queue = this.#queues.get(owner)!
    const [nextWaiter] = queue.waiters
    if (nextWaiter !== undefined) {
      queue.waiters.delete(nextWaiter)
      nextWaiter()
    } else {
      queue.activeCount--
      if (queue.activeCount === 0) this.#queues.delete(owner)
    }
  }
}
