/** A call that is answered when the test says so. */
export class Held<T> {
  /** Settles once the call is made. */
  readonly called: Promise<void>
  readonly answered: Promise<T>
  answer!: (value: T) => void
  #call!: () => void

  constructor() {
    this.called = new Promise((resolve) => (this.#call = resolve))
    this.answered = new Promise((resolve) => (this.answer = resolve))
  }

  call(): Promise<T> {
    this.#call()
    return this.answered
  }
}
