import { readAnswers } from '../../support/wire/wire.ts'
import type { World } from '../simulation.ts'
import { Exchanges, type House } from './exchanges.ts'
import { KINDS, write } from './requests.ts'
import type { Act, Plan } from './scenario.ts'
import { Wire } from './wire.ts'

/** A client with its connection, which holds what comes against what it has asked. */
export class Client extends Exchanges {
  readonly wire: Wire
  readonly openedAt: number
  readonly #plan: Plan
  #sentAt = 0
  #received: Buffer = Buffer.alloc(0)
  /** Runs once all that was sent is answered. */
  #goOn: (() => void) | undefined
  #hasEnded = false
  #hasLeft = false
  /** When it last read, and when it reads next. */
  #readAt: number | undefined
  #readsAt: number | undefined
  /** Since when the server waits for it to read. */
  #blockedAt: number | undefined
  closedAt = Infinity

  constructor(world: World, house: House, plan: Plan) {
    super(world, house)
    this.#plan = plan
    this.openedAt = world.time.now
    this.wire = new Wire(world, this)
    this.#act(0)
  }

  #act(index: number): void {
    const { acts, last, end, endMs } = this.#plan
    const act = acts[index]
    if (act === undefined) {
      if (end !== 'stay') this.world.time.after(endMs, () => this.#end(end))
      return
    }
    this.world.time.after(act.ms, () => {
      const isLast = index === acts.length - 1
      const send = (): void => this.#send(act, isLast ? last : undefined, () => this.#act(index + 1))
      if (act.waits && this.answered < this.asked.length) this.#goOn = send
      else send()
    })
  }

  #end(end: 'end' | 'leave' | 'reset'): void {
    if (this.wire.closed) return
    this.world.tell('client', this.openedAt, end)
    this.#hasEnded = true
    if (end === 'end') return this.wire.arrive(null)
    this.#hasLeft = true
    this.wire[end]()
  }

  #send({ kinds, times, cut, cutMs }: Act, last: string | undefined, next: () => void): void {
    if (this.wire.destroyed) return
    let text = ''
    for (const kind of [...Array.from({ length: times }, () => kinds).flat(), ...(last === undefined ? [] : [last])]) {
      const number = ++this.house.requests
      const [head, body] = write(KINDS[kind]!, number)
      const start = this.sent + text.length
      text += head + body
      const headEnd = start + head.length
      this.asked.push({ number, kind, start, headEnd, end: headEnd + (KINDS[kind]!.length ?? body.length) })
    }
    const expecting = last === undefined && times === 1 && kinds.join() === 'expect'
    const at = expecting ? this.asked.at(-1)!.headEnd - this.sent : cut === undefined ? text.length : cut % text.length
    this.#push(text.slice(0, at))
    let isSent = false
    const rest = (): void => {
      if (isSent) return
      isSent = true
      this.sendRest = undefined
      this.#push(text.slice(at))
      next()
    }
    if (expecting) this.sendRest = rest
    else if (at === text.length) next()
    else if (cutMs !== undefined) this.world.time.after(cutMs, rest)
    else this.#act(this.#plan.acts.length)
  }

  #push(text: string): void {
    if (text === '' || this.wire.destroyed) return
    this.sent += text.length
    this.#sentAt = this.world.time.happenedAt
    for (const asked of this.asked) if (asked.end <= this.sent) asked.wholeAt ??= this.now
    const place = this.asked.find(({ end }) => end >= this.sent)!
    this.world.tell('sent', text.length, 'bytes up to', this.sent - place.start, 'of', place.number, place.kind)
    this.wire.arrive(Buffer.from(text, 'latin1'))
  }

  /** When it next reads; Infinity if it does not. */
  readsAt(): number {
    const { readMs } = this.#plan
    if (readMs === 0 || this.#readAt === this.now) return this.now
    this.#readsAt ??= readMs === Infinity ? readMs : Math.ceil(this.now / readMs) * readMs
    if (this.#readsAt > this.now) {
      this.#blockedAt ??= this.now
      return this.#readsAt
    }
    this.#readsAt = undefined
    return (this.#readAt = this.now)
  }

  receive(bytes: Buffer): void {
    this.#blockedAt = undefined
    const { answers, rest } = readAnswers(Buffer.concat([this.#received, bytes]))
    this.#received = rest
    for (const answer of answers) this.take(answer)
    if (this.answered < this.asked.length || this.#goOn === undefined) return
    this.#goOn()
    this.#goOn = undefined
  }

  /** The server has ended its side. */
  receiveEnd(): void {
    this.world.time.after(this.#plan.lingerMs, () => {
      if (!this.wire.destroyed) this.wire.arrive(null)
    })
  }

  /** Whether what the server has sent may not have come to it. */
  get missesSome(): boolean {
    return this.#hasLeft || this.#blockedAt !== undefined
  }

  /** The server's end is closed. */
  closed(): void {
    this.closedAt = this.now
    const { stallTimeoutMs, headersTimeoutMs, isDraining, isCutting } = this.house
    this.world.tell('closed', this.openedAt)
    const lostMs = this.now - (this.#blockedAt ?? Infinity)
    const isLingering = this.isClosing || this.refusals > 0
    if (this.#hasLeft || isCutting || this.asked.some(({ mayBreak }) => mayBreak)) return
    if (lostMs >= 0) {
      this.rule(isLingering || lostMs >= stallTimeoutMs, 'who reads is not cut:', this.openedAt)
      return
    }
    if (isLingering) return
    const isSending = this.#sentAt === this.now
    for (const { number, start, answer } of this.asked) {
      // What is on its way when the connection closes is lost.
      const isDue = start < (isSending ? this.wire.bytesRead : this.sent)
      this.rule(!isDue || answer !== undefined, 'each request is answered before the connection closes:', number)
    }
    const isIdle = this.now - this.wire.activeAt >= headersTimeoutMs
    this.rule(isDraining || isIdle || this.#hasEnded, 'an idle connection stays open for its time')
  }
}
