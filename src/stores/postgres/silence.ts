/** How often a silent server is asked whether it is back, in milliseconds. */
const INTERVAL_MS = 500

/**
 * What is done while a server says nothing, as behind a broken network: one call in two waits for each other no longer
 * than it must, since only this asks the server, and it asks anew before the last question has failed.
 */
export class Silence {
  readonly #ask: () => Promise<boolean>
  #brokenAt = 0
  /** Settles when the server says something again; undefined while it does. */
  over: Promise<void> | undefined

  /** @param ask asks the server anything; whether there was an answer, be it an error */
  constructor(ask: () => Promise<boolean>) {
    this.#ask = ask
  }

  /**
   * Notes that there was no answer.
   * @param askedAt when the answer began to lack; says nothing if the server has said something since
   */
  begin(askedAt: number): void {
    if (askedAt > this.#brokenAt) this.over ??= this.#listen()
  }

  #listen(): Promise<void> {
    return new Promise((resolve) => {
      const ask = (): void => {
        void this.#ask().then((isAnswered) => {
          if (!isAnswered) return
          clearInterval(timer)
          this.#brokenAt = performance.now()
          this.over = undefined
          resolve()
        })
      }
      const timer = setInterval(ask, INTERVAL_MS)
      timer.unref()
      ask()
    })
  }
}
