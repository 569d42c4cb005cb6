import { EventEmitter } from 'node:events'
import net, { type NetConnectOpts } from 'node:net'
import tls from 'node:tls'
import { NoResponseError } from '../../../src/stores/postgres/errors.ts'
import type { Simulation } from '../simulation.ts'
import { Stub } from '../virtual-time.ts'
import type { ConnectFault, CancelFault, StatementFault, Scenario } from './scenario.ts'

const netConnectStub = new Stub<(options: NetConnectOpts, onConnect?: () => void) => Socket>(net, 'connect')
const tlsConnectStub = new Stub<(options: { readonly socket: Socket }) => Socket>(tls, 'connect')

/** The length of a CancelRequest. The only other message is an SSLRequest. */
const CANCEL_LENGTH = 16

/** What the network needs from a session. */
interface CancelableSession {
  pendingCancels: number
  unansweredCancelAt: number | undefined
  cancel(requestedAt: number): void
}

/** Delivers messages between servers and clients. During an outage, all messages wait for its end. */
export class Network {
  readonly world: Simulation
  readonly sessions = new Map<number, CancelableSession>()
  readonly nextStatementFault: () => StatementFault | undefined
  readonly nextInspectionFault: () => StatementFault | undefined
  readonly nextConnectFault: () => ConnectFault | undefined
  readonly #nextCancelFault: () => CancelFault | undefined
  /** The session whose statement is about to be canceled. */
  sessionToCancel: CancelableSession | undefined
  /** When a client last abandoned a cancellation or a reachability check. */
  abandonedAt = -Infinity
  unreachableSince = Infinity
  #outageCount = 0
  #delayedDeliveries: (() => void)[] = []

  constructor(world: Simulation, { statementFaults, inspectionFaults, connectFaults, cancelFaults }: Scenario) {
    this.world = world
    this.nextStatementFault = world.createFaultSource(statementFaults)
    this.nextInspectionFault = world.createFaultSource(inspectionFaults)
    this.nextConnectFault = world.createFaultSource(connectFaults)
    this.#nextCancelFault = world.createFaultSource(cancelFaults)
    world.addCleanup(netConnectStub.use((options, onConnect) => this.#connect(options, onConnect)))
    world.addCleanup(tlsConnectStub.use(({ socket }) => socket.secure()))
  }

  deliver(ms: number, callback: () => void): void {
    this.world.time.schedule(ms, () =>
      this.#outageCount > 0 ? void this.#delayedDeliveries.push(callback) : callback(),
    )
  }

  startOutage(): void {
    if (this.#outageCount++ === 0) this.unreachableSince = this.world.time.now
  }

  endOutage(): void {
    if (--this.#outageCount > 0) return
    this.unreachableSince = Infinity
    for (const callback of this.#delayedDeliveries.splice(0)) callback()
  }

  #connect({ timeout }: NetConnectOpts, onConnect?: () => void): Socket {
    const isCancellation = timeout === undefined
    const fault = isCancellation ? this.#nextCancelFault() : undefined
    const socket = new Socket(this, fault ?? NO_FAULT, isCancellation ? this.sessionToCancel : undefined)
    if (onConnect !== undefined) socket.once('connect', onConnect)
    if (timeout !== undefined) this.world.time.schedule(timeout, () => socket.emitIfOpen('timeout'))
    return socket
  }
}

const NO_FAULT: CancelFault = { kind: 'slow', ms: 1 }

/** A connection outside the pool that cancels a statement, or checks whether the server is reachable. */
class Socket extends EventEmitter {
  readonly #network: Network
  readonly #fault: CancelFault
  readonly #requestedAt: number
  readonly #session: CancelableSession | undefined
  #isOpen = true

  constructor(network: Network, fault: CancelFault, session: CancelableSession | undefined) {
    super()
    this.#session = session
    if (session !== undefined) session.pendingCancels++
    this.#network = network
    this.#fault = fault
    this.#requestedAt = network.world.time.now
    const { kind, ms } = fault
    if (kind === 'refused') network.deliver(ms, () => this.#end(new Error('connect ECONNREFUSED')))
    else if (kind !== 'unheard') network.deliver(kind === 'slow' ? ms : 1, () => this.emitIfOpen('connect'))
  }

  emitIfOpen(event: string, ...args: unknown[]): void {
    if (this.#isOpen) this.emit(event, ...args)
  }

  write(bytes: Buffer): void {
    const { kind, ms } = this.#fault
    if (bytes.length !== CANCEL_LENGTH) return this.#respondToTls()
    this.#network.world.log('cancellation sent:', kind)
    const session = this.#network.sessions.get(bytes.readInt32BE(8))
    const cancelSession = (): void => session?.cancel(this.#requestedAt)
    if (kind === 'mute') this.#network.deliver(1, cancelSession)
    else if (kind === 'late') this.#network.deliver(ms, cancelSession)
    else if (kind === 'reset') this.#network.deliver(ms, () => this.#end(new Error('read ECONNRESET')))
    else {
      this.#network.deliver(1, () => {
        cancelSession()
        this.#network.deliver(0, () => this.#end())
      })
    }
  }

  #respondToTls(): void {
    const { kind, ms } = this.#fault
    if (kind === 'ended') this.#network.deliver(ms, () => this.#end())
    else this.#network.deliver(1, () => this.emitIfOpen('data', kind === 'noTls' ? 'N' : 'S'))
  }

  secure(): this {
    this.#network.deliver(1, () => this.emitIfOpen('secureConnect'))
    return this
  }

  resume(): this {
    return this
  }

  destroy(error?: Error): void {
    if (this.#session !== undefined && error instanceof NoResponseError)
      this.#session.unansweredCancelAt = this.#requestedAt
    this.#network.abandonedAt = this.#network.world.time.now
    this.#network.world.time.schedule(0, () => this.#end(error))
  }

  #end(error?: Error): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#session !== undefined) this.#session.pendingCancels--
    if (error !== undefined) this.emit('error', error)
    else this.emit('end')
    this.emit('close')
  }
}
