const INTERVAL_MS = 500

/** Waits until a silent server, as behind a broken network, says something again. */
export class Silence {
  readonly #ask: () => Promise<boolean>
  #lastOver = 0
  #stopAsking: (() => void) | undefined
  /** Settles when the server says something again; undefined if it is not silent. */
  over: Promise<void> | undefined

  constructor(ask: () => Promise<boolean>) {
    this.#ask = ask
  }

  /** Begins, unless the server has said something since the unanswered question was sent. */
  begin(askedAt: number): void {
    if (askedAt <= this.#lastOver || this.over !== undefined) return
    this.over = new Promise((resolve) => {
      const end = (): void => {
        clearInterval(timer)
        this.#lastOver = Math.max(this.#lastOver, performance.now())
        this.over = undefined
        resolve()
      }
      const ask = (): void => void this.#ask().then((isAnswered) => isAnswered && end())
      const timer = setInterval(ask, INTERVAL_MS).unref()
      this.#stopAsking = end
      ask()
    })
  }

  stop(): void {
    this.#stopAsking?.()
    this.#lastOver = Infinity
  }
}
