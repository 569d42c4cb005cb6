import { clearTimeout, setTimeout } from '../timers.ts'
import { StoreUnavailableError } from './store.ts'

export interface ListContext {
  readonly owner: string
  readonly client: unknown
}

/** Reports whether and when the client that requested a list disconnects. */
interface ClientMonitor {
  isClosed(client: unknown): boolean
  onClose(client: unknown, listener: () => void): void
}

interface OwnerQueue {
  activeCount: number
  readonly waiters: Set<() => void>
}

/**
 * Limits how many long lists of an owner are read concurrently, because each list keeps a page in memory. Further lists
 * wait, first come, first served.
 */
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

  /**
   * Acquires a slot. Returns undefined if a slot is free; otherwise a promise that resolves to true when the list gets
   * a slot, or to false if the client disconnects first, and that rejects after the timeout.
   */
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
        reject(
          new StoreUnavailableError(
            `The list waited ${this.#timeoutMs} ms for another list of its owner to end (${reason}).`,
          ),
        )
      }, this.#timeoutMs)
      function grantSlot(): void {
        clearTimeout(timer)
        resolve(true)
      }
      waiters.add(grantSlot)
      this.clients.onClose(client, () => {
        // The list isn't waiting anymore: it has acquired a slot or timed out.
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
