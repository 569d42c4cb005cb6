import { parseResponses } from '../../support/wire/parse-responses.ts'
import type { Simulation } from '../simulation.ts'
import { ConnectionChecker, type ServerState } from './connection-checker.ts'
import { REQUEST_KINDS, encodeRequest } from './requests.ts'
import type { Action, Plan } from './scenario.ts'
import { SimulatedSocket } from './simulated-socket.ts'

/** A client with one connection that checks the responses against its requests. */
export class Client extends ConnectionChecker {
  readonly wire: SimulatedSocket
  readonly openedAt: number
  readonly #plan: Plan
  #lastSentAt = 0
  #received: Buffer = Buffer.alloc(0)
  /** Called once all sent requests have their responses. */
  #onAllAnswered: (() => void) | undefined
  #hasEnded = false
  #hasDisconnected = false
  #lastReadAt: number | undefined
  #nextReadAt: number | undefined
  /** When the server started to wait for this client to read. */
  #blockedAt: number | undefined
  closedAt = Infinity

  constructor(world: Simulation, serverState: ServerState, plan: Plan) {
    super(world, serverState)
    this.#plan = plan
    this.openedAt = world.time.now
    this.wire = new SimulatedSocket(world, this)
    this.#performAction(0)
  }

  #performAction(index: number): void {
    const { actions, last, end, endMs } = this.#plan
    const action = actions[index]
    if (action === undefined) {
      if (end !== 'stay') this.world.time.schedule(endMs, () => this.#end(end))
      return
    }
    this.world.time.schedule(action.ms, () => {
      const isLast = index === actions.length - 1
      const send = (): void => this.#send(action, isLast ? last : undefined, () => this.#performAction(index + 1))
      if (action.waitsForResponses && this.responseCount < this.requests.length) this.#onAllAnswered = send
      else send()
    })
  }

  #end(end: 'end' | 'leave' | 'reset'): void {
    if (this.wire.closed) return
    this.world.log('client', this.openedAt, end)
    this.#hasEnded = true
    if (end === 'end') return this.wire.pushIncoming(null)
    this.#hasDisconnected = true
    this.wire[end]()
  }

  #send({ kinds, repeatCount, splitAt, splitDelayMs }: Action, last: string | undefined, onSent: () => void): void {
    if (this.wire.destroyed) return
    let text = ''
    for (const kind of [
      ...Array.from({ length: repeatCount }, () => kinds).flat(),
      ...(last === undefined ? [] : [last]),
    ]) {
      const number = ++this.serverState.requestCount
      const [head, body] = encodeRequest(REQUEST_KINDS[kind]!, number)
      const start = this.sentBytes + text.length
      text += head + body
      const headEnd = start + head.length
      this.requests.push({
        number,
        kind,
        start,
        headerEnd: headEnd,
        end: headEnd + (REQUEST_KINDS[kind]!.declaredLength ?? body.length),
      })
    }
    const isExpectContinue = last === undefined && repeatCount === 1 && kinds.join() === 'expect'
    const splitIndex = isExpectContinue
      ? this.requests.at(-1)!.headerEnd - this.sentBytes
      : splitAt === undefined
        ? text.length
        : splitAt % text.length
    this.#transmit(text.slice(0, splitIndex))
    let isSent = false
    const sendRemainder = (): void => {
      if (isSent) return
      isSent = true
      this.sendRemainder = undefined
      this.#transmit(text.slice(splitIndex))
      onSent()
    }
    if (isExpectContinue) this.sendRemainder = sendRemainder
    else if (splitIndex === text.length) onSent()
    else if (splitDelayMs !== undefined) this.world.time.schedule(splitDelayMs, sendRemainder)
    else this.#performAction(this.#plan.actions.length)
  }

  #transmit(text: string): void {
    if (text === '' || this.wire.destroyed) return
    this.sentBytes += text.length
    this.#lastSentAt = this.world.time.eventTime
    for (const request of this.requests) if (request.end <= this.sentBytes) request.lastByteSentAt ??= this.now
    const currentRequest = this.requests.find(({ end }) => end >= this.sentBytes)!
    this.world.log(
      'sent',
      text.length,
      'bytes up to',
      this.sentBytes - currentRequest.start,
      'of',
      currentRequest.number,
      currentRequest.kind,
    )
    this.wire.pushIncoming(Buffer.from(text, 'latin1'))
  }

  /** Returns when the client reads next; Infinity if never. */
  getNextReadTime(): number {
    const { readMs } = this.#plan
    if (readMs === 0 || this.#lastReadAt === this.now) return this.now
    this.#nextReadAt ??= readMs === Infinity ? readMs : Math.ceil(this.now / readMs) * readMs
    if (this.#nextReadAt > this.now) {
      this.#blockedAt ??= this.now
      return this.#nextReadAt
    }
    this.#nextReadAt = undefined
    return (this.#lastReadAt = this.now)
  }

  receive(bytes: Buffer): void {
    this.#blockedAt = undefined
    const { responses, rest } = parseResponses(Buffer.concat([this.#received, bytes]))
    this.#received = rest
    for (const response of responses) this.onResponse(response)
    if (this.responseCount < this.requests.length || this.#onAllAnswered === undefined) return
    this.#onAllAnswered()
    this.#onAllAnswered = undefined
  }

  /** Called when the server ends its side. */
  receiveEnd(): void {
    this.world.time.schedule(this.#plan.lingerMs, () => {
      if (!this.wire.destroyed) this.wire.pushIncoming(null)
    })
  }

  /** Whether data from the server may not have reached this client. */
  get mayHaveMissedData(): boolean {
    return this.#hasDisconnected || this.#blockedAt !== undefined
  }

  /** Called when the server's end is closed. */
  onClose(): void {
    this.closedAt = this.now
    const { stallTimeoutMs, headersTimeoutMs, isDraining, isAborting } = this.serverState
    this.world.log('closed', this.openedAt)
    const stalledMs = this.now - (this.#blockedAt ?? Infinity)
    const hasStartedClosing = this.isClosing || this.reportedRejections > 0
    if (this.#hasDisconnected || isAborting || this.requests.some(({ mayBeTruncated }) => mayBeTruncated)) return
    if (stalledMs >= 0) {
      this.check(
        hasStartedClosing || stalledMs >= stallTimeoutMs,
        'a client that reads is not disconnected:',
        this.openedAt,
      )
      return
    }
    if (hasStartedClosing) return
    const isSending = this.#lastSentAt === this.now
    for (const { number, start, receivedCode } of this.requests) {
      // Data in transit when the connection closes is lost.
      const mustBeAnswered = start < (isSending ? this.wire.bytesRead : this.sentBytes)
      this.check(
        !mustBeAnswered || receivedCode !== undefined,
        'each request gets its response before the connection closes:',
        number,
      )
    }
    const isIdle = this.now - this.wire.lastActiveAt >= headersTimeoutMs
    this.check(isDraining || isIdle || this.#hasEnded, 'an idle connection stays open until its keep-alive timeout')
  }
}
