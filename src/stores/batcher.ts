/** How a {@link Batcher} forms its groups. */
export interface BatcherOptions {
  /** Groups that may be under way at once; default 1. Operations that arrive meanwhile collect. */
  readonly maxRuns?: number
  /** Operations in a group; default unlimited. The others wait for the next group. */
  readonly maxOperations?: number
  /**
   * Calls back when the next group is to be taken; default at once, so that the first operation of an idle
   * batcher goes alone. With `setImmediate` it takes along whatever arrives in the same turn of the event loop.
   */
  readonly schedule?: (takeGroup: () => void) => unknown
}

/**
 * Carries out a group of operations.
 * @returns what came of each, in their order; an operation that failed does not take the others with it
 * @throws where the whole group failed
 */
export type Run<Operation, Result> = (
  operations: readonly Operation[],
) => readonly PromiseSettledResult<Result>[] | Promise<readonly PromiseSettledResult<Result>[]>

interface Entry<Operation, Result> {
  readonly operation: Operation
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

/** Operations that wait together go together, in the order in which they came. */
export class Batcher<Operation, Result> {
  readonly #run: Run<Operation, Result>
  readonly #maxRuns: number
  readonly #maxOperations: number
  readonly #schedule: (takeGroup: () => void) => unknown
  readonly #waiting: Entry<Operation, Result>[] = []
  readonly #idle: (() => void)[] = []
  #runs = 0
  #scheduled = false

  constructor(run: Run<Operation, Result>, options: BatcherOptions = {}) {
    this.#run = run
    this.#maxRuns = options.maxRuns ?? 1
    this.#maxOperations = options.maxOperations ?? Infinity
    this.#schedule = options.schedule ?? ((takeGroup) => takeGroup())
  }

  /** Settles with what came of the operation, once the group that it went with is through. */
  add(operation: Operation): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation, resolve, reject })
      this.#wake()
    })
  }

  /** Settles once no operation waits and no group is under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#wake()
    })
  }

  #wake(answered = 0): void {
    if (this.#waiting.length === 0) {
      if (this.#runs === 0) for (const resolve of this.#idle.splice(0)) resolve()
      return
    }
    if (this.#scheduled || this.#runs === this.#maxRuns) return
    this.#scheduled = true
    this.#schedule(() => {
      this.#scheduled = false
      void this.#start(answered)
      this.#wake()
    })
  }

  /** @param answered how many operations had the group that has just ended, if it is why this one starts */
  async #start(answered: number): Promise<void> {
    // Who was answered comes back now. Where more wait than that, they are parted in halves, so that there is always
    // work on both sides: with groups of 1 and of 63 in turn, each side would wait for the other.
    const { length } = this.#waiting
    const share = answered === 0 ? length : Math.ceil((answered + length) / 2)
    const group = this.#waiting.splice(0, Math.min(share, this.#maxOperations))
    this.#runs++
    try {
      const outcomes = await this.#run(group.map(({ operation }) => operation))
      for (const [index, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[index]
        if (outcome?.status === 'fulfilled') resolve(outcome.value)
        else reject(outcome ? outcome.reason : new Error('The batch says nothing about this operation.'))
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
    this.#runs--
    this.#wake(group.length)
  }
}
