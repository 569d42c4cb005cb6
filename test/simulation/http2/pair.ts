import { Duplex } from 'node:stream'

/** One end of a connection in memory: what is written to it arrives at the other end. */
export class End extends Duplex {
  #other: End | undefined
  readonly #onActivity: () => void

  private constructor(onActivity: () => void) {
    super()
    this.#onActivity = onActivity
  }

  /** @param onActivity called for everything that arrives at an end */
  static pair(onActivity: () => void): [client: End, server: End] {
    const [client, server] = [new End(onActivity), new End(onActivity)]
    client.#other = server
    server.#other = client
    return [client, server]
  }

  override _read(): void {
    // Bytes arrive by themselves.
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#deliver(bytes)
    done()
  }

  override _final(done: () => void): void {
    this.#deliver(null)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#deliver(null)
    done(error)
  }

  #deliver(bytes: Buffer | null): void {
    this.#onActivity()
    const other = this.#other!
    if (!other.destroyed && !other.readableEnded) other.push(bytes)
  }
}
