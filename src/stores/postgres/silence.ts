const INTERVAL_MS = 500

/** Asks a silent server, as behind a broken network, until it says something again. */
export class Silence {
  readonly #ask: () => Promise<boolean>
  #lastOver = 0
  #timer: NodeJS.Timeout | undefined
  #waiting: (() => void)[] = []

  constructor(ask: () => Promise<boolean>) {
    this.#ask = ask
  }

  get isOn(): boolean {
    return this.#timer !== undefined
  }

  /** Begins, unless the server has said something since the unanswered question was sent. */
  begin(askedAt: number): void {
    if (askedAt <= this.#lastOver || this.isOn) return
    this.#timer = setInterval(() => this.#askAgain(), INTERVAL_MS).unref()
    this.#askAgain()
  }

  /** Settles when it ends, or is asked again: a promise of the end alone would keep all that wait, for hours perhaps. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  stop(): void {
    this.#end()
    this.#lastOver = Infinity
  }

  #askAgain(): void {
    this.#wake()
    void this.#ask().then((isAnswered) => isAnswered && this.#end())
  }

  #end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#lastOver = Math.max(this.#lastOver, performance.now())
    this.#wake()
  }

  #wake(): void {
    for (const goOn of this.#waiting.splice(0)) goOn()
  }
}
