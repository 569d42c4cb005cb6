import type { ServerResponse } from 'node:http'
import type { RawResponse } from '../../support/wire/parse-responses.ts'
import type { Simulation } from '../simulation.ts'
import { REQUEST_KINDS } from './requests.ts'
import type { SimulatedSocket } from './simulated-socket.ts'

/** A request, and what became of it. */
export interface SentRequest {
  readonly number: number
  readonly kind: string
  /** Where it begins and ends among the bytes that its client sends, and where its header ends. */
  readonly start: number
  readonly headerEnd: number
  readonly end: number
  /** When the server has read its first byte, and when the client had sent the last one. */
  firstByteReadAt?: number
  lastByteSentAt?: number
  response?: ServerResponse
  isDuringDrain?: boolean
  /** Whether none waited behind it when its header was sent. */
  isLast?: boolean
  /** What it must be answered, by status or error. */
  expectedCode?: number
  /** What it was answered. */
  receivedCode?: number
  /** What the service said of it. */
  reportedStatus?: number
  /** Whether its answer may be cut. */
  mayBeTruncated?: boolean
}

/** What clients know of the server. */
export interface ServerState {
  readonly stallTimeoutMs: number
  readonly headersTimeoutMs: number
  isThrottled: boolean
  isDraining: boolean
  /** Whether the drain cuts what is left. */
  isAborting: boolean
  /** Counts requests, from all clients. */
  requestCount: number
}

/** The requests of a connection and their answers, with the rules that they keep. */
export abstract class ConnectionChecker {
  readonly requests: SentRequest[] = []
  abstract readonly wire: SimulatedSocket
  readonly world: Simulation
  readonly serverState: ServerState
  /** How many bytes the client has sent, and the server has read. */
  sentBytes = 0
  readBytes = 0
  /** Whether the guard was awake when it last read. */
  isReadThrottled = false
  announcedCount = 0
  startedCount = 0
  responseCount = 0
  /** How many refusals on the bare connection were told of, and came. */
  reportedRejections = 0
  receivedRejections = 0
  /** The round in which the server last began a request. */
  #lastTick = 0
  /** Whether an answer has said that the connection closes. */
  isClosing = false
  /** Sends the rest of what was cut. */
  protected sendRemainder: (() => void) | undefined

  constructor(world: Simulation, serverState: ServerState) {
    this.world = world
    this.serverState = serverState
  }

  protected check(condition: boolean, rule: string, ...details: unknown[]): void {
    this.world.check(condition, rule, ...details)
  }

  get now(): number {
    return this.world.time.now
  }

  /** How many of its requests wait for their turn. */
  get queuedCount(): number {
    return this.announcedCount - this.startedCount
  }

  /** The request that the server is reading. */
  get current(): SentRequest | undefined {
    return this.requests.find(({ end, kind }) => end > this.readBytes || REQUEST_KINDS[kind]!.isUnterminated)
  }

  /** Whether Node takes the connection for one that waits for a request. */
  get isIdle(): boolean {
    const { response } = this.requests[this.startedCount - 1] ?? {}
    return this.readBytes > 0 && this.current?.firstByteReadAt === undefined && response?.writableEnded !== false
  }

  /** Node announces a request. */
  onRequestEvent(): void {
    this.announcedCount++
    const { response } = this.requests[this.startedCount - 1] ?? {}
    if (response?.headersSent === false) this.requests[this.startedCount - 1]!.isLast = false
  }

  /** The server reads. */
  onServerRead(bytes: number): void {
    this.isReadThrottled = this.serverState.isThrottled
    const mustPause = this.wire.isDelivering || this.isReadThrottled
    // In a drain, a request whose turn it is begins a round later.
    const isRunning = this.requests[this.startedCount - 1]?.response?.writableEnded === false
    const queuedCount = this.serverState.isDraining && !isRunning ? this.queuedCount - 1 : this.queuedCount
    this.check(queuedCount <= 0 || !mustPause, 'what comes while a request waits is not read')
    this.readBytes += bytes
    for (const request of this.requests) if (request.start < this.readBytes) request.firstByteReadAt ??= this.now
  }

  /** The server begins a request. */
  startRequest(number: number, response: ServerResponse): SentRequest {
    const request = this.requests[this.startedCount++]!
    this.world.log('begins', number, request.kind)
    this.check(request.number === number, 'requests begin in their order:', number)
    this.check(!this.isClosing, 'nothing begins after an answer that closes the connection:', number)
    const previous = this.requests[this.startedCount - 2]?.response
    this.check(previous?.writableEnded !== false, 'a request begins once the one before it is answered:', number)
    const { loopCount } = this.world.time
    this.check(this.#lastTick !== loopCount, 'no connection has two turns in a round:', number)
    this.#lastTick = loopCount
    request.response = response
    request.isDuringDrain = this.serverState.isDraining
    request.isLast = this.queuedCount === 0
    return request
  }

  onResponse({ status, headers, body }: RawResponse): void {
    if (status === 100) {
      this.check(this.requests[this.responseCount]?.kind === 'expect', 'only who expects it is told to go on')
      this.sendRemainder?.()
      return
    }
    const request = this.requests[this.responseCount++]
    const number = headers.get('x-number')
    const closesConnection = headers.get('connection') === 'close'
    const code = body.startsWith('{"error"') ? (JSON.parse(body) as { error: number }).error : status
    this.world.log('answer', request?.number, code, closesConnection ? 'closes' : '')
    this.check(request !== undefined, 'nothing is answered that was not asked:', code)
    this.check(!this.isClosing, 'nothing follows an answer that closes the connection:', code)
    if (request === undefined) return
    request.receivedCode = code
    if (number === undefined) this.receivedRejections++
    else this.check(Number(number) === request.number, 'answers come in their order:', number, request.number)
    this.check(
      this.#isExpected(request, code, number === undefined),
      'each request gets its answer:',
      request.number,
      code,
    )
    if (closesConnection) this.isClosing = true
    const laterRequests = this.requests.slice(this.responseCount)
    this.check(
      !closesConnection || laterRequests.every(({ response }) => !response),
      'nothing runs after an answer that closes',
    )
    this.check(
      closesConnection || !REQUEST_KINDS[request.kind]!.closesConnection,
      'this answer closes:',
      request.number,
    )
    const { isDuringDrain: isInDrain, isLast } = request
    this.check(closesConnection || !(isInDrain && isLast), 'in a drain, answers close:', request.number)
    const mayClose = code >= 400 || REQUEST_KINDS[request.kind]!.closesConnection === true || isLast !== false
    this.check(!closesConnection || mayClose, 'a drain closes no connection before its last answer:', request.number)
    if (!closesConnection) this.sendRemainder?.()
  }

  #isExpected(request: SentRequest, code: number, isRejection: boolean): boolean {
    const isComplete = request.end <= this.sentBytes
    const { headersTimeoutMs } = this.serverState
    if (isRejection && request.kind === 'expect' && this.sendRemainder !== undefined) return false
    if (isRejection && code === 40800)
      return request.start < this.sentBytes && !(request.lastByteSentAt! - request.firstByteReadAt! <= headersTimeoutMs)
    if (isRejection && !isComplete) return code === 40000
    if (request.kind === 'long' && code === 50300) return true
    return code === (request.expectedCode ?? REQUEST_KINDS[request.kind]!.expectedCode)
  }
}
