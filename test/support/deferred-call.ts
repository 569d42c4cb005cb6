/** A call that is answered when the test says so. */
export class DeferredCall<T> {
  /** Settles once the call is made. */
  readonly called: Promise<void>
  readonly result: Promise<T>
  resolve!: (value: T) => void
  #markCalled!: () => void

  constructor() {
    this.called = new Promise((resolve) => (this.#markCalled = resolve))
    this.result = new Promise((resolve) => (this.resolve = resolve))
  }

  call(): Promise<T> {
    this.#markCalled()
    return this.result
  }
}
