/** The time that a contestant takes in a round, besides its measurement: to start, create plants and warm up. */
const PREPARATION_SECONDS = 3

/** Estimates how long a benchmark takes. A run is one contestant in one round. */
export class TimeLeft {
  readonly #startedAt = performance.now()
  readonly #runSeconds: number
  #done = 0
  #remaining: number

  /** @param runs the maximum number of runs */
  constructor(runs: number, durationSeconds: number) {
    this.#remaining = runs
    this.#runSeconds = PREPARATION_SECONDS + durationSeconds
  }

  /** Counts finished runs. Runs that turned out to be unnecessary are only subtracted from the remaining ones. */
  finish(runs: number, skippedRuns = 0): void {
    this.#done += runs
    this.#remaining -= runs + skippedRuns
  }

  /** The maximum time that is left, such as "40 min" or "50 s". */
  toString(): string {
    const elapsedSeconds = (performance.now() - this.#startedAt) / 1000
    const seconds = this.#remaining * (this.#done === 0 ? this.#runSeconds : elapsedSeconds / this.#done)
    return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`
  }
}
