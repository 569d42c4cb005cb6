import type { ServerResponse } from 'node:http'
import { readAnswers, type WireAnswer } from '../../support/wire/wire.ts'
import type { World } from '../simulation.ts'
import { KINDS, write } from './requests.ts'
import type { Act, Plan } from './scenario.ts'
import { Wire, type Peer } from './wire.ts'

/** A request, and what became of it. */
export interface Asked {
  readonly number: number
  readonly kind: string
  /** Where it begins and ends among the bytes that its client sends, and where its header ends. */
  readonly start: number
  readonly headEnd: number
  readonly end: number
  /** When the server has read its first byte, and when the client had sent the last one. */
  readAt?: number
  wholeAt?: number
  response?: ServerResponse
  isInDrain?: boolean
  /** Whether none waited behind it when it began. */
  isLast?: boolean
  /** What it must be answered, by status or error. */
  code?: number
  /** What it was answered. */
  answer?: number
  /** What the service said of it. */
  told?: number
  /** Whether its answer may be cut. */
  mayBreak?: boolean
}

/** What clients know of the server. */
export interface House {
  readonly stallTimeoutMs: number
  readonly headersTimeoutMs: number
  isDraining: boolean
  /** Whether the drain cuts what is left. */
  isCutting: boolean
  /** Counts requests, from all clients. */
  requests: number
}

/** A client with its connection, which holds what comes against what it has asked. */
export class Client implements Peer {
  readonly asked: Asked[] = []
  readonly wire: Wire
  readonly openedAt: number
  readonly #world: World
  readonly #house: House
  readonly #plan: Plan
  /** How many bytes it has sent, and the server has read. */
  #sent = 0
  #sentAt = 0
  read = 0
  /** Whether what it last read was a slice. */
  isSliced = false
  announced = 0
  begun = 0
  /** The round in which the server last began a request. */
  #round = 0
  #answered = 0
  #received: Buffer = Buffer.alloc(0)
  /** Runs once all that was sent is answered. */
  #goOn: (() => void) | undefined
  #sendRest: (() => void) | undefined
  /** Whether an answer has said that the connection closes. */
  #isClosing = false
  #hasEnded = false
  #hasLeft = false
  /** When it last read, and when it reads next. */
  #readAt: number | undefined
  #readsAt: number | undefined
  /** Since when the server waits for it to read. */
  #blockedAt: number | undefined
  closedAt = Infinity
  refusals = 0
  bare = 0

  constructor(world: World, house: House, plan: Plan) {
    this.#world = world
    this.#house = house
    this.#plan = plan
    this.openedAt = world.time.now
    this.wire = new Wire(world, this)
    this.#act(0)
  }

  get #now(): number {
    return this.#world.time.now
  }

  #rule(isSo: boolean, rule: string, ...words: unknown[]): void {
    this.#world.expect(isSo, rule, ...words)
  }

  /** How many of its requests wait for their turn. */
  get waiting(): number {
    return this.announced - this.begun
  }

  /** The request that the server is reading. */
  get current(): Asked | undefined {
    return this.asked.find(({ end, kind }) => end > this.read || KINDS[kind]!.isEndless)
  }

  /** Whether Node takes the connection for one that waits for a request. */
  get isIdle(): boolean {
    const { response } = this.asked[this.begun - 1] ?? {}
    return this.read > 0 && this.current?.readAt === undefined && response?.writableEnded !== false
  }

  #act(index: number): void {
    const { acts, last, end, endMs } = this.#plan
    const act = acts[index]
    if (act === undefined) {
      if (end !== 'stay') this.#world.time.after(endMs, () => this.#end(end))
      return
    }
    this.#world.time.after(act.ms, () => {
      const isLast = index === acts.length - 1
      const send = (): void => this.#send(act, isLast ? last : undefined, () => this.#act(index + 1))
      if (act.waits && this.#answered < this.asked.length) this.#goOn = send
      else send()
    })
  }

  #end(end: 'end' | 'leave' | 'reset'): void {
    if (this.wire.closed) return
    this.#world.tell('client', this.openedAt, end)
    this.#hasEnded = true
    if (end === 'end') return this.wire.arrive(null)
    this.#hasLeft = true
    this.wire[end]()
  }

  #send({ kinds, times, cut, cutMs }: Act, last: string | undefined, next: () => void): void {
    if (this.wire.destroyed) return
    let text = ''
    for (const kind of [...Array.from({ length: times }, () => kinds).flat(), ...(last === undefined ? [] : [last])]) {
      const number = ++this.#house.requests
      const [head, body] = write(KINDS[kind]!, number)
      const start = this.#sent + text.length
      text += head + body
      const headEnd = start + head.length
      this.asked.push({ number, kind, start, headEnd, end: headEnd + (KINDS[kind]!.length ?? body.length) })
    }
    const expecting = last === undefined && times === 1 && kinds.join() === 'expect'
    const at = expecting ? this.asked.at(-1)!.headEnd - this.#sent : cut === undefined ? text.length : cut % text.length
    this.#push(text.slice(0, at))
    let isSent = false
    const rest = (): void => {
      if (isSent) return
      isSent = true
      this.#sendRest = undefined
      this.#push(text.slice(at))
      next()
    }
    if (expecting) this.#sendRest = rest
    else if (at === text.length) next()
    else if (cutMs !== undefined) this.#world.time.after(cutMs, rest)
  }

  #push(text: string): void {
    if (text === '' || this.wire.destroyed) return
    this.#sent += text.length
    this.#sentAt = this.#now
    for (const asked of this.asked) if (asked.end <= this.#sent) asked.wholeAt ??= this.#now
    const place = this.asked.find(({ end }) => end >= this.#sent)!
    this.#world.tell('sent', text.length, 'bytes up to', this.#sent - place.start, 'of', place.number, place.kind)
    this.wire.arrive(Buffer.from(text, 'latin1'))
  }

  /** The server reads. */
  onRead(bytes: number): void {
    this.isSliced = this.wire.listenerCount('readable') > 0
    const isHeldBack = this.wire.isDelivering || this.isSliced
    this.#rule(this.waiting === 0 || !isHeldBack, 'what comes while a request waits is not read')
    this.read += bytes
    for (const asked of this.asked) if (asked.start < this.read) asked.readAt ??= this.#now
  }

  /** The server begins a request. */
  begin(number: number, response: ServerResponse): Asked {
    const asked = this.asked[this.begun++]!
    this.#world.tell('begins', number, asked.kind)
    this.#rule(asked.number === number, 'requests begin in their order:', number)
    this.#rule(!this.#isClosing, 'nothing begins after an answer that closes the connection:', number)
    const before = this.asked[this.begun - 2]?.response
    this.#rule(before?.writableEnded !== false, 'a request begins once the one before it is answered:', number)
    const { loopCount } = this.#world.time
    this.#rule(this.#round !== loopCount, 'no connection has two turns in a round:', number)
    this.#round = loopCount
    asked.response = response
    asked.isInDrain = this.#house.isDraining
    asked.isLast = this.waiting === 0
    return asked
  }

  readsAt(): number {
    const { readMs } = this.#plan
    if (readMs === 0 || this.#readAt === this.#now) return this.#now
    this.#readsAt ??= readMs === Infinity ? readMs : Math.ceil(this.#now / readMs) * readMs
    if (this.#readsAt > this.#now) {
      this.#blockedAt ??= this.#now
      return this.#readsAt
    }
    this.#readsAt = undefined
    return (this.#readAt = this.#now)
  }

  receive(bytes: Buffer): void {
    this.#blockedAt = undefined
    const { answers, rest } = readAnswers(Buffer.concat([this.#received, bytes]))
    this.#received = rest
    for (const answer of answers) this.#take(answer)
    if (this.#answered < this.asked.length || this.#goOn === undefined) return
    this.#goOn()
    this.#goOn = undefined
  }

  #take({ status, headers, body }: WireAnswer): void {
    if (status === 100) {
      this.#rule(this.asked[this.#answered]?.kind === 'expect', 'only who expects it is told to go on')
      this.#sendRest?.()
      return
    }
    const asked = this.asked[this.#answered++]
    const number = headers.get('x-number')
    const closes = headers.get('connection') === 'close'
    const code = body.startsWith('{"error"') ? (JSON.parse(body) as { error: number }).error : status
    this.#world.tell('answer', asked?.number, code, closes ? 'closes' : '')
    this.#rule(asked !== undefined, 'nothing is answered that was not asked:', code)
    this.#rule(!this.#isClosing, 'nothing follows an answer that closes the connection:', code)
    if (asked === undefined) return
    asked.answer = code
    if (number === undefined) this.bare++
    else this.#rule(Number(number) === asked.number, 'answers come in their order:', number, asked.number)
    this.#rule(this.#mayBe(asked, code, number === undefined), 'each request gets its answer:', asked.number, code)
    if (closes) this.#isClosing = true
    const later = this.asked.slice(this.#answered)
    this.#rule(!closes || later.every(({ response }) => !response), 'nothing runs after an answer that closes')
    this.#rule(closes || !KINDS[asked.kind]!.closes, 'this answer closes:', asked.number)
    const { isInDrain, isLast } = asked
    this.#rule(closes || !(isInDrain && isLast), 'in a drain, answers close:', asked.number)
    const isOver = code >= 400 || KINDS[asked.kind]!.closes === true || isLast !== false
    this.#rule(!closes || isOver, 'a drain closes no connection before its last answer:', asked.number)
    if (!closes) this.#sendRest?.()
  }

  #mayBe(asked: Asked, code: number, isBare: boolean): boolean {
    const isWhole = asked.end <= this.#sent
    const { headersTimeoutMs } = this.#house
    if (isBare && this.#sendRest !== undefined) return false
    if (isBare && code === 40800)
      return asked.start < this.#sent && !(asked.wholeAt! - asked.readAt! <= headersTimeoutMs)
    if (isBare && !isWhole) return code === 40000
    if (asked.kind === 'long' && code === 50300) return true
    return code === (asked.code ?? KINDS[asked.kind]!.code)
  }

  receiveEnd(): void {
    this.#world.time.after(this.#plan.lingerMs, () => {
      if (!this.wire.destroyed) this.wire.arrive(null)
    })
  }

  /** Whether what the server has sent may not have come to it. */
  get missesSome(): boolean {
    return this.#hasLeft || this.#blockedAt !== undefined
  }

  closed(): void {
    this.closedAt = this.#now
    const { stallTimeoutMs, headersTimeoutMs, isDraining, isCutting } = this.#house
    this.#world.tell('closed', this.openedAt)
    const lostMs = this.#now - (this.#blockedAt ?? Infinity)
    const isLingering = this.#isClosing || this.refusals > 0
    if (this.#hasLeft || isCutting || this.asked.some(({ mayBreak }) => mayBreak)) return
    if (lostMs >= 0) {
      this.#rule(isLingering || lostMs >= stallTimeoutMs, 'who reads is not cut:', this.openedAt)
      return
    }
    if (isLingering) return
    const isSending = this.#sentAt === this.#now
    for (const { number, start, answer } of this.asked) {
      // What is on its way when the connection closes is lost.
      const isDue = start < (isSending ? this.wire.bytesRead : this.#sent)
      this.#rule(!isDue || answer !== undefined, 'each request is answered before the connection closes:', number)
    }
    const isIdle = this.#now - this.wire.activeAt >= headersTimeoutMs
    this.#rule(isDraining || isIdle || this.#hasEnded, 'an idle connection stays open for its time')
  }
}
