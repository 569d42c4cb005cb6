import { StoreUnavailableError } from './store.ts'

export const DEFAULT_LISTS_PER_OWNER = 32

/** A long list. */
interface LongList {
  readonly owner: string
  /** Calls `listener` once the client has gone. */
  whenGone(listener: () => void): void
}

/** The long lists of an owner. */
interface Turns {
  running: number
  /** What lets each of the others begin, in the order in which they came. */
  readonly waiting: Set<() => void>
}

/**
 * Lets at most so many long lists of an owner be read at once: each holds a page in memory for as long as its client takes
 * to read it. The others wait, in the order in which they came.
 */
export class ListTurns {
  readonly #maxPerOwner: number
  readonly #timeoutMs: number
  readonly #owners = new Map<string, Turns>()

  /** @param timeoutMs how long a list may wait */
  constructor(maxPerOwner: number, timeoutMs: number) {
    this.#maxPerOwner = maxPerOwner
    this.#timeoutMs = timeoutMs
  }

  /**
   * Asks for a turn. Each turn must be ended by {@link leave}.
   * @returns undefined if the turn is there at once. Else a promise: of true once it is there, or of false if the client
   * has gone before. It is rejected with a StoreUnavailableError if that takes too long.
   */
  enter(list: LongList): Promise<boolean> | undefined {
    const turns = this.#owners.get(list.owner) ?? { running: 0, waiting: new Set() }
    this.#owners.set(list.owner, turns)
    if (turns.running === this.#maxPerOwner) return this.#wait(turns, list)
    turns.running++
    return undefined
  }

  #wait({ waiting }: Turns, list: LongList): Promise<boolean> {
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
      list.whenGone(() => {
        // It may have begun long ago.
        if (!waiting.delete(begin)) return
        clearTimeout(timer)
        resolve(false)
      })
    })
  }

  leave(owner: string): void {
    const turns = this.#owners.get(owner)!
    const [next] = turns.waiting
    if (next !== undefined) {
      // The turn goes from one list to the next.
      turns.waiting.delete(next)
      next()
      return
    }
    turns.running--
    if (turns.running === 0) this.#owners.delete(owner)
  }
}
