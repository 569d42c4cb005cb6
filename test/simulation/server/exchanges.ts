import type { ServerResponse } from 'node:http'
import type { WireAnswer } from '../../support/wire/wire.ts'
import type { World } from '../simulation.ts'
import { KINDS } from './requests.ts'
import type { Wire } from './wire.ts'

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
  /** Whether none waited behind it when its header was sent. */
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
  isGuarded: boolean
  isDraining: boolean
  /** Whether the drain cuts what is left. */
  isCutting: boolean
  /** Counts requests, from all clients. */
  requests: number
}

/** The requests of a connection and their answers, with the rules that they keep. */
export abstract class Exchanges {
  readonly asked: Asked[] = []
  abstract readonly wire: Wire
  readonly world: World
  readonly house: House
  /** How many bytes the client has sent, and the server has read. */
  sent = 0
  read = 0
  /** Whether the guard was awake when it last read. */
  isSliced = false
  announced = 0
  begun = 0
  answered = 0
  /** How many refusals on the bare connection were told of, and came. */
  refusals = 0
  bare = 0
  /** The round in which the server last began a request. */
  #round = 0
  /** Whether an answer has said that the connection closes. */
  isClosing = false
  /** Sends the rest of what was cut. */
  protected sendRest: (() => void) | undefined

  constructor(world: World, house: House) {
    this.world = world
    this.house = house
  }

  protected rule(isSo: boolean, rule: string, ...words: unknown[]): void {
    this.world.expect(isSo, rule, ...words)
  }

  get now(): number {
    return this.world.time.now
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

  /** Node announces a request. */
  announce(): void {
    this.announced++
    const { response } = this.asked[this.begun - 1] ?? {}
    if (response?.headersSent === false) this.asked[this.begun - 1]!.isLast = false
  }

  /** The server reads. */
  onRead(bytes: number): void {
    this.isSliced = this.house.isGuarded
    const isHeldBack = this.wire.isDelivering || this.isSliced
    // In a drain, a request whose turn it is begins a round later.
    const isRunning = this.asked[this.begun - 1]?.response?.writableEnded === false
    const waiting = this.house.isDraining && !isRunning ? this.waiting - 1 : this.waiting
    this.rule(waiting <= 0 || !isHeldBack, 'what comes while a request waits is not read')
    this.read += bytes
    for (const asked of this.asked) if (asked.start < this.read) asked.readAt ??= this.now
  }

  /** The server begins a request. */
  begin(number: number, response: ServerResponse): Asked {
    const asked = this.asked[this.begun++]!
    this.world.tell('begins', number, asked.kind)
    this.rule(asked.number === number, 'requests begin in their order:', number)
    this.rule(!this.isClosing, 'nothing begins after an answer that closes the connection:', number)
    const before = this.asked[this.begun - 2]?.response
    this.rule(before?.writableEnded !== false, 'a request begins once the one before it is answered:', number)
    const { loopCount } = this.world.time
    this.rule(this.#round !== loopCount, 'no connection has two turns in a round:', number)
    this.#round = loopCount
    asked.response = response
    asked.isInDrain = this.house.isDraining
    asked.isLast = this.waiting === 0
    return asked
  }

  take({ status, headers, body }: WireAnswer): void {
    if (status === 100) {
      this.rule(this.asked[this.answered]?.kind === 'expect', 'only who expects it is told to go on')
      this.sendRest?.()
      return
    }
    const asked = this.asked[this.answered++]
    const number = headers.get('x-number')
    const closes = headers.get('connection') === 'close'
    const code = body.startsWith('{"error"') ? (JSON.parse(body) as { error: number }).error : status
    this.world.tell('answer', asked?.number, code, closes ? 'closes' : '')
    this.rule(asked !== undefined, 'nothing is answered that was not asked:', code)
    this.rule(!this.isClosing, 'nothing follows an answer that closes the connection:', code)
    if (asked === undefined) return
    asked.answer = code
    if (number === undefined) this.bare++
    else this.rule(Number(number) === asked.number, 'answers come in their order:', number, asked.number)
    this.rule(this.#mayBe(asked, code, number === undefined), 'each request gets its answer:', asked.number, code)
    if (closes) this.isClosing = true
    const later = this.asked.slice(this.answered)
    this.rule(!closes || later.every(({ response }) => !response), 'nothing runs after an answer that closes')
    this.rule(closes || !KINDS[asked.kind]!.closes, 'this answer closes:', asked.number)
    const { isInDrain, isLast } = asked
    this.rule(closes || !(isInDrain && isLast), 'in a drain, answers close:', asked.number)
    const isOver = code >= 400 || KINDS[asked.kind]!.closes === true || isLast !== false
    this.rule(!closes || isOver, 'a drain closes no connection before its last answer:', asked.number)
    if (!closes) this.sendRest?.()
  }

  #mayBe(asked: Asked, code: number, isBare: boolean): boolean {
    const isWhole = asked.end <= this.sent
    const { headersTimeoutMs } = this.house
    if (isBare && asked.kind === 'expect' && this.sendRest !== undefined) return false
    if (isBare && code === 40800)
      return asked.start < this.sent && !(asked.wholeAt! - asked.readAt! <= headersTimeoutMs)
    if (isBare && !isWhole) return code === 40000
    if (asked.kind === 'long' && code === 50300) return true
    return code === (asked.code ?? KINDS[asked.kind]!.code)
  }
}
