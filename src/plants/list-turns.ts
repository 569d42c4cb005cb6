interface Turns {
  running: number
  readonly waiting: (() => void)[]
}

/**
 * Lets at most so many long lists of an owner be read at once: each holds a page in memory for as long as its client takes
 * to read it. The others wait, in the order in which they came.
 */
export class ListTurns {
  readonly #maxPerOwner: number
  readonly #owners = new Map<string, Turns>()

  constructor(maxPerOwner: number) {
    this.#maxPerOwner = maxPerOwner
  }

  /** @returns a promise of the turn; undefined if it is there at once. Each turn must be ended by {@link leave}. */
  enter(owner: string): Promise<void> | undefined {
    const turns = this.#owners.get(owner) ?? { running: 0, waiting: [] }
    this.#owners.set(owner, turns)
    if (turns.running === this.#maxPerOwner) return new Promise((resolve) => turns.waiting.push(resolve))
    turns.running++
    return undefined
  }

  leave(owner: string): void {
    const turns = this.#owners.get(owner)!
    const next = turns.waiting.shift()
    // The turn goes from one list to the next.
    if (next !== undefined) return next()
    turns.running--
    if (turns.running === 0) this.#owners.delete(owner)
  }
}
