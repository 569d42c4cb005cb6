/** How often a silent server is asked whether it is back, in milliseconds. */
const INTERVAL_MS = 500

/** Waits for a server that says nothing, as behind a broken network. */
export class Silence {
  readonly #ask: () => Promise<boolean>
  #lastOver = 0
  #stopAsking: (() => void) | undefined
  /** Settles when the server says something again; undefined while it does. */
  over: Promise<void> | undefined

  /** @param ask whether the server says anything; asked again before that is known */
  constructor(ask: () => Promise<boolean>) {
    this.#ask = ask
  }

  /**
   * Begins, unless the server has said something since.
   * @param askedAt when it was asked what it did not answer
   */
  begin(askedAt: number): void {
    if (askedAt > this.#lastOver) this.over ??= this.#listen()
  }

  /** Ends for good: nobody waits any more. */
  stop(): void {
    this.#stopAsking?.()
    this.#lastOver = Infinity
  }

  #listen(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearInterval(timer)
        this.#lastOver = Math.max(this.#lastOver, performance.now())
        this.over = undefined
        resolve()
      }
      const ask = (): void => {
        void this.#ask().then((isAnswered) => isAnswered && end())
      }
      const timer = setInterval(ask, INTERVAL_MS)
      timer.unref()
      this.#stopAsking = end
      ask()
    })
  }
}
