import { Duplex } from 'node:stream'
import type { World } from '../simulation.ts'
import type { Timer } from '../virtual-time.ts'
import type { Client } from './client.ts'

/** The client's end of a connection. */
type Receiver = Pick<Client, 'readsAt' | 'receive' | 'receiveEnd' | 'closed'>

/** The server's end of a connection, with what a socket of Node and the kernel do for it. */
export class Wire extends Duplex {
  bytesRead = 0
  timeout = 0
  /** When it last took in or handed on anything. */
  activeAt: number
  readonly #world: World
  readonly #client: Receiver
  #timer: Timer | undefined
  /** What has arrived and was not read; null is the end. */
  #arrived: (Buffer | null)[] = []
  #isAsked = false
  #isDue = false
  /** Whether the server is given what has just come. */
  isDelivering = false
  #state: 'open' | 'left' | 'reset' = 'open'
  #write: { readonly bytes: Buffer; readonly done: (error?: Error) => void } | undefined

  constructor(world: World, client: Receiver) {
    // The same in all versions of Node.
    super({ highWaterMark: 16_384 })
    this.#world = world
    this.#client = client
    this.activeAt = world.time.now
  }

  /** Takes what the client sends; null is the end of its side. */
  arrive(bytes: Buffer | null): void {
    this.#arrived.push(bytes)
    this.#deliverLater()
  }

  /** The client closes its end: what is written then brings a reset. */
  leave(): void {
    this.arrive(null)
    if (this.#state === 'open') this.#state = 'left'
  }

  reset(): void {
    this.#state = 'reset'
    this.#deliverLater()
  }

  /** One read in each round of the event loop. */
  #deliverLater(): void {
    if (this.#isDue || !this.#isAsked || (this.#arrived.length === 0 && this.#state !== 'reset')) return
    this.#isDue = true
    this.#world.time.poll(() => {
      this.#isDue = false
      if (this.destroyed) return
      if (this.#state === 'reset') return void this.destroy(failure('ECONNRESET'))
      this.#isAsked = false
      this.#touch()
      const end = this.#arrived.indexOf(null)
      const pieces = this.#arrived.splice(0, end === -1 ? this.#arrived.length : Math.max(end, 1)) as Buffer[]
      if (end === 0) return void this.push(null)
      const bytes = Buffer.concat(pieces)
      this.bytesRead += bytes.length
      this.isDelivering = true
      this.push(bytes)
      this.isDelivering = false
    })
  }

  override _read(): void {
    this.#isAsked = true
    this.#deliverLater()
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#touch()
    if (this.#state === 'reset') return done(failure('EPIPE'))
    if (this.#state === 'left') {
      this.reset()
      return done()
    }
    this.#write = { bytes, done }
    this.#handOn()
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'binary', done)
  }

  #handOn(): void {
    if (this.#write === undefined || this.destroyed) return
    const waitMs = this.#client.readsAt() - this.#world.time.now
    if (waitMs > 0) {
      if (waitMs < Infinity) this.#world.time.after(waitMs, () => this.#handOn())
      return
    }
    const { bytes, done } = this.#write
    this.#write = undefined
    this.#touch()
    this.#client.receive(bytes)
    done()
  }

  override _final(done: () => void): void {
    this.#client.receiveEnd()
    this.#world.time.after(0, done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#world.time.clear(this.#timer)
    this.#client.closed()
    done(error)
  }

  setTimeout(ms: number): this {
    this.timeout = ms
    this.#touch()
    return this
  }

  #touch(): void {
    const { time } = this.#world
    this.activeAt = time.now
    time.clear(this.#timer)
    this.#timer = this.timeout > 0 ? time.after(this.timeout, () => this.emit('timeout')) : undefined
  }

  resetAndDestroy(): void {
    this.destroy()
  }

  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code })
}
