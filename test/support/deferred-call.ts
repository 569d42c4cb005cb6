/** A mock async call whose result the test resolves. */
export class DeferredCall<T> {
  /** Resolves when the call is made. */
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
