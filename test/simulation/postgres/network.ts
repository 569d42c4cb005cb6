import { EventEmitter } from 'node:events'
import net, { type NetConnectOpts } from 'node:net'
import tls from 'node:tls'
import { NoAnswerError } from '../../../src/stores/postgres/failure.ts'
import type { World } from '../simulation.ts'
import { Hook } from '../virtual-time.ts'
import type { Session } from './session.ts'
import type { Arrival, Cancellation, Fate, Scenario } from './scenario.ts'

const tcp = new Hook<(options: NetConnectOpts, onConnect?: () => void) => Socket>(net, 'connect')
const secured = new Hook<(options: { readonly socket: Socket }) => Socket>(tls, 'connect')

/** The length of a request to cancel; the other one asks whether the server takes TLS. */
const CANCEL_LENGTH = 16

/** Brings what servers and clients send to each other, unless it is silent: then all waits until it speaks again. */
export class Network {
  readonly world: World
  readonly sessions = new Map<number, Session>()
  readonly nextFate: () => Fate | undefined
  readonly nextLook: () => Fate | undefined
  readonly nextArrival: () => Arrival | undefined
  readonly #nextCancellation: () => Cancellation | undefined
  /** The session whose statement is about to be cancelled. */
  asking: Session | undefined
  /** When a client gave up a cancellation, or the question whether the server is there. */
  gaveUpAt = -Infinity
  silentSince = Infinity
  #silences = 0
  #held: (() => void)[] = []

  constructor(world: World, { fates, looks, arrivals, cancellations }: Scenario) {
    this.world = world
    this.nextFate = world.inTurn(fates)
    this.nextLook = world.inTurn(looks)
    this.nextArrival = world.inTurn(arrivals)
    this.#nextCancellation = world.inTurn(cancellations)
    world.atEnd(tcp.take((options, onConnect) => this.#connect(options, onConnect)))
    world.atEnd(secured.take(({ socket }) => socket.secure()))
  }

  deliver(ms: number, bring: () => void): void {
    this.world.time.after(ms, () => (this.#silences > 0 ? void this.#held.push(bring) : bring()))
  }

  silence(): void {
    if (this.#silences++ === 0) this.silentSince = this.world.time.now
  }

  speak(): void {
    if (--this.#silences > 0) return
    this.silentSince = Infinity
    for (const bring of this.#held.splice(0)) bring()
  }

  #connect({ timeout }: NetConnectOpts, onConnect?: () => void): Socket {
    const isCancellation = timeout === undefined
    const fate = isCancellation ? this.#nextCancellation() : undefined
    const socket = new Socket(this, fate ?? WELL, isCancellation ? this.asking : undefined)
    if (onConnect !== undefined) socket.once('connect', onConnect)
    if (timeout !== undefined) this.world.time.after(timeout, () => socket.emitOpen('timeout'))
    return socket
  }
}

const WELL: Cancellation = { kind: 'slow', ms: 1 }

/** A connection beside the pool's: it cancels, or asks whether the server is there. */
class Socket extends EventEmitter {
  readonly #network: Network
  readonly #fate: Cancellation
  readonly #askedAt: number
  readonly #session: Session | undefined
  #isOpen = true

  constructor(network: Network, fate: Cancellation, session: Session | undefined) {
    super()
    this.#session = session
    if (session !== undefined) session.cancelling++
    this.#network = network
    this.#fate = fate
    this.#askedAt = network.world.time.now
    const { kind, ms } = fate
    if (kind === 'refused') network.deliver(ms, () => this.#end(new Error('connect ECONNREFUSED')))
    else if (kind !== 'unheard') network.deliver(kind === 'slow' ? ms : 1, () => this.emitOpen('connect'))
  }

  emitOpen(event: string, ...args: unknown[]): void {
    if (this.#isOpen) this.emit(event, ...args)
  }

  write(bytes: Buffer): void {
    const { kind, ms } = this.#fate
    if (bytes.length !== CANCEL_LENGTH) return this.#answerTls()
    this.#network.world.tell('a cancellation is sent:', kind)
    const session = this.#network.sessions.get(bytes.readInt32BE(8))
    const arrive = (): void => session?.cancel(this.#askedAt)
    if (kind === 'mute') this.#network.deliver(1, arrive)
    else if (kind === 'late') this.#network.deliver(ms, arrive)
    else if (kind === 'reset') this.#network.deliver(ms, () => this.#end(new Error('read ECONNRESET')))
    else {
      this.#network.deliver(1, () => {
        arrive()
        this.#network.deliver(0, () => this.#end())
      })
    }
  }

  #answerTls(): void {
    const { kind, ms } = this.#fate
    if (kind === 'ended') this.#network.deliver(ms, () => this.#end())
    else this.#network.deliver(1, () => this.emitOpen('data', kind === 'noTls' ? 'N' : 'S'))
  }

  secure(): this {
    this.#network.deliver(1, () => this.emitOpen('secureConnect'))
    return this
  }

  resume(): this {
    return this
  }

  destroy(error?: Error): void {
    if (this.#session !== undefined && error instanceof NoAnswerError) this.#session.unheardAt = this.#askedAt
    this.#network.gaveUpAt = this.#network.world.time.now
    this.#network.world.time.after(0, () => this.#end(error))
  }

  #end(error?: Error): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#session !== undefined) this.#session.cancelling--
    if (error !== undefined) this.emit('error', error)
    else this.emit('end')
    this.emit('close')
  }
}
