import type { MaybePromise } from '../../maybe-promise.ts'
import { reportBatch } from '../batch-channel.ts'

/** How a {@link Batcher} forms its groups. */
export interface BatcherOptions {
  /** The most groups that may be under way at once; default 1. Operations that arrive meanwhile wait. */
  readonly maxRuns?: number
  /** The most operations of a group; default unlimited. The others wait for the next group. */
  readonly maxOperations?: number
}

/**
 * Runs a group of operations.
 * @returns the outcome of each, in their order; one that failed does not fail the others
 * @throws if the whole group failed
 */
export type Run<Operation, Result> = (
  operations: readonly Operation[],
) => MaybePromise<readonly PromiseSettledResult<Result>[]>

interface Entry<Operation, Result> {
  readonly operation: Operation
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Runs operations in groups, in the order in which they came. The first one goes alone; those that arrive while it runs
 * go together.
 */
export class Batcher<Operation, Result> {
  readonly #run: Run<Operation, Result>
  readonly #maxRuns: number
  readonly #maxOperations: number
  readonly #waiting: Entry<Operation, Result>[] = []
  #runs = 0

  constructor(run: Run<Operation, Result>, options: BatcherOptions = {}) {
    this.#run = run
    this.#maxRuns = options.maxRuns ?? 1
    this.#maxOperations = options.maxOperations ?? Infinity
  }

  /** Settles with the result of the operation, once its group has run. */
  add(operation: Operation): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation, resolve, reject })
      this.#wake()
    })
  }

  /** Starts as many groups as may be under way. */
  #wake(settled = 0): void {
    for (; this.#waiting.length > 0 && this.#runs < this.#maxRuns; settled = 0) void this.#start(settled)
  }

  /** @param settled the size of the group that has just ended, if its end is why this one starts; else 0 */
  async #start(settled: number): Promise<void> {
    // Callers whose operations have just settled will soon send as many again. Take half of those and of what waits
    // now, so that the next group fills while this one runs. If large and small groups took turns, callers and store
    // would wait for each other.
    const { length } = this.#waiting
    const share = settled === 0 ? length : Math.ceil((settled + length) / 2)
    const group = this.#waiting.splice(0, Math.min(share, this.#maxOperations))
    this.#runs++
    reportBatch(group.length)
    try {
      const outcomes = await this.#run(group.map(({ operation }) => operation))
      for (const [index, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[index]
        if (outcome?.status === 'fulfilled') resolve(outcome.value)
        else reject(outcome ? outcome.reason : new Error('The outcome of this operation is missing.'))
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
    this.#runs--
    this.#wake(group.length)
  }
}
