import { createRandom } from './random.ts'

/** A growable list of numbers. It uses a typed array, because a run records the latency of every request. */
export class Samples {
  #values = new Float64Array(1024)
  #count = 0

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const grown = new Float64Array(this.#count * 2)
      grown.set(this.#values)
      this.#values = grown
    }
    this.#values[this.#count++] = value
  }

  get count(): number {
    return this.#count
  }

  sorted(): Float64Array {
    return this.#values.slice(0, this.#count).sort()
  }
}

/** Merges lists into one list, sorted in ascending order. */
export function mergeSorted(lists: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const list of lists) {
    all.set(list, offset)
    offset += list.length
  }
  return all.sort()
}

/** Returns a percentile by the nearest-rank method, or NaN for an empty list. */
export function percentile(sorted: Float64Array, percent: number): number {
  const rank = Math.ceil((percent * sorted.length) / 100)
  return sorted[Math.max(rank, 1) - 1] ?? NaN
}

/** Returns the median, or NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

/** The number of bootstrap samples that {@link medianInterval} draws. */
const BOOTSTRAP_SAMPLES = 2000

/**
 * Returns the 95% confidence interval of the median by bootstrapping: repeatedly draws a sample of the same size with
 * replacement. The same values always give the same interval, and an empty list gives NaN.
 */
export function medianInterval(values: readonly number[]): readonly [low: number, high: number] {
  const random = createRandom(values.length)
  const medians = Float64Array.from({ length: BOOTSTRAP_SAMPLES }, () => {
    return median(values.map(() => values[random(values.length)]!))
  }).sort()
  return [percentile(medians, 2.5), percentile(medians, 97.5)]
}
