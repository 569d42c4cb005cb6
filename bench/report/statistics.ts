import { createRandom } from './random.ts'

/** Numbers as they come, kept compactly: a run measures the latency of every single request. */
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

/** All values of some lists, ascending. */
export function mergeSorted(lists: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const list of lists) {
    all.set(list, offset)
    offset += list.length
  }
  return all.sort()
}

/** The smallest value that `percent` of the values do not exceed (nearest rank); NaN of none. */
export function percentile(sorted: Float64Array, percent: number): number {
  const rank = Math.ceil((percent * sorted.length) / 100)
  return sorted[Math.max(rank, 1) - 1] ?? NaN
}

/** The middle value, or the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

/** How often {@link medianInterval} draws. */
const BOOTSTRAP_SAMPLES = 2000

/**
 * Where the median of such values lies, in 95 of 100 cases: a bootstrap, which draws as many of the values as there
 * are, with replacement, again and again. The same values always give the same interval; none give NaN.
 */
export function medianInterval(values: readonly number[]): readonly [low: number, high: number] {
  const random = createRandom(values.length)
  const medians = Float64Array.from({ length: BOOTSTRAP_SAMPLES }, () => {
    return median(values.map(() => values[random(values.length)]!))
  }).sort()
  return [percentile(medians, 2.5), percentile(medians, 97.5)]
}
