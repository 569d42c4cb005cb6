import { Duplex } from 'node:stream'

/** One end of an in-memory connection. Data written to one end arrives at the other. */
export class SocketEnd extends Duplex {
  #peer: SocketEnd | undefined
  readonly #onActivity: () => void

  private constructor(onActivity: () => void) {
    super()
    this.#onActivity = onActivity
  }

  /** @param onActivity called for everything that arrives at an end */
  static pair(onActivity: () => void): [client: SocketEnd, server: SocketEnd] {
    const [client, server] = [new SocketEnd(onActivity), new SocketEnd(onActivity)]
    client.#peer = server
    server.#peer = client
    return [client, server]
  }

  override _read(): void {
    // #deliver() pushes data without being asked.
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
    const peer = this.#peer!
    if (!peer.destroyed && !peer.readableEnded) peer.push(bytes)
  }
}
