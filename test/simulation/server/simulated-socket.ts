import { Duplex } from 'node:stream'
import type { Simulation } from '../simulation.ts'
import type { Timer } from '../virtual-time.ts'

/** What the socket needs from the client's end of the connection. */
interface ConnectionReceiver {
  getNextReadTime(): number
  receive(bytes: Buffer): void
  receiveEnd(): void
  onClose(): void
}

/** The server's end of a connection. Simulates Node's socket and the kernel. */
export class SimulatedSocket extends Duplex {
  bytesRead = 0
  timeout = 0
  /** When data was last received or sent. */
  lastActiveAt: number
  readonly #world: Simulation
  readonly #receiver: ConnectionReceiver
  #timer: Timer | undefined
  /** Received but unread data; null is the end. */
  #incoming: (Buffer | null)[] = []
  #isReadRequested = false
  #isDeliveryScheduled = false
  /** Whether a chunk is being passed to the server right now. */
  isDelivering = false
  #state: 'open' | 'left' | 'reset' = 'open'
  #pendingWrite: { readonly bytes: Buffer; readonly done: (error?: Error) => void } | undefined

  constructor(world: Simulation, client: ConnectionReceiver) {
    // Fixed, because the default differs between Node versions.
    super({ highWaterMark: 16_384 })
    this.#world = world
    this.#receiver = client
    this.lastActiveAt = world.time.now
  }

  /** Receives data from the client; null ends the client's side. */
  pushIncoming(bytes: Buffer | null): void {
    this.#incoming.push(bytes)
    this.#scheduleDelivery()
  }

  /** Simulates that the client closes its end, so that the next write results in a reset. */
  leave(): void {
    this.pushIncoming(null)
    if (this.#state === 'open') this.#state = 'left'
  }

  reset(): void {
    this.#state = 'reset'
    this.#scheduleDelivery()
  }

  /** Schedules a read. There is at most one per event-loop tick. */
  #scheduleDelivery(): void {
    if (this.#isDeliveryScheduled || !this.#isReadRequested || (this.#incoming.length === 0 && this.#state !== 'reset'))
      return
    this.#isDeliveryScheduled = true
    this.#world.time.scheduleIo(() => {
      this.#isDeliveryScheduled = false
      if (this.destroyed) return
      if (this.#state === 'reset') return void this.destroy(createError('ECONNRESET'))
      this.#isReadRequested = false
      this.#resetTimeout()
      const end = this.#incoming.indexOf(null)
      const chunks = this.#incoming.splice(0, end === -1 ? this.#incoming.length : Math.max(end, 1)) as Buffer[]
      if (end === 0) return void this.push(null)
      const bytes = Buffer.concat(chunks)
      this.bytesRead += bytes.length
      this.isDelivering = true
      this.push(bytes)
      this.isDelivering = false
    })
  }

  override _read(): void {
    this.#isReadRequested = true
    this.#scheduleDelivery()
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#resetTimeout()
    if (this.#state === 'reset') return done(createError('EPIPE'))
    if (this.#state === 'left') {
      this.reset()
      return done()
    }
    this.#pendingWrite = { bytes, done }
    this.#flushPendingWrite()
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'binary', done)
  }

  #flushPendingWrite(): void {
    if (this.#pendingWrite === undefined || this.destroyed) return
    const waitMs = this.#receiver.getNextReadTime() - this.#world.time.now
    if (waitMs > 0) {
      if (waitMs < Infinity) this.#world.time.schedule(waitMs, () => this.#flushPendingWrite())
      return
    }
    const { bytes, done } = this.#pendingWrite
    this.#pendingWrite = undefined
    this.#resetTimeout()
    this.#receiver.receive(bytes)
    done()
  }

  override _final(done: () => void): void {
    this.#receiver.receiveEnd()
    this.#world.time.schedule(0, done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#world.time.cancel(this.#timer)
    this.#receiver.onClose()
    done(error)
  }

  setTimeout(ms: number): this {
    this.timeout = ms
    this.#resetTimeout()
    return this
  }

  #resetTimeout(): void {
    const { time } = this.#world
    this.lastActiveAt = time.now
    time.cancel(this.#timer)
    this.#timer = this.timeout > 0 ? time.schedule(this.timeout, () => this.emit('timeout')) : undefined
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

function createError(code: string): Error {
  return Object.assign(new Error(code), { code })
}
