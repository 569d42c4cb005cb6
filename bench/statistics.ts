/** The 97.5th percentiles of Student's t-distribution with 1, 2, 3 … degrees of freedom. */
const STUDENT_T = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12]
/** With more degrees of freedom. */
const NORMAL = 2.1

export interface Ratio {
  readonly mean: number
  /** The 95% confidence interval. With a single pair, there is none: from 0 to infinity. */
  readonly low: number
  readonly high: number
}

/**
 * Returns the geometric mean of the ratios of paired values. Each pair comes from two processes that ran side by side,
 * because the speed of two processes with the same code can differ by several percent for as long as they run.
 */
export function ratioOf(numerators: readonly number[], denominators: readonly number[]): Ratio {
  const logs = numerators.map((value, i) => Math.log(value / denominators[i]!))
  const mean = average(logs)
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1)
  const margin = logs.length < 2 ? Infinity : (STUDENT_T[logs.length - 2] ?? NORMAL) * Math.sqrt(variance / logs.length)
  return { mean: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin) }
}

export const average = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

/** Returns a percentile by the nearest-rank method, or NaN for an empty list. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(Math.ceil((percent * sorted.length) / 100), 1) - 1] ?? NaN
}
