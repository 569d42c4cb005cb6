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
