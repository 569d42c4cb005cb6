import type { ServerResponse } from 'node:http'
import type { RawResponse } from '../../support/wire/parse-responses.ts'
import type { Simulation } from '../simulation.ts'
import { REQUEST_KINDS } from './requests.ts'
import type { SimulatedSocket } from './simulated-socket.ts'

/** A request and its progress. */
export interface SentRequest {
  readonly number: number
  readonly kind: string
  /**
   * Offsets in the bytes that the client sends on its connection: of the request, of the end of its header, of its end.
   */
  readonly start: number
  readonly headerEnd: number
  readonly end: number
  /** When the server read the first byte. */
  firstByteReadAt?: number
  /** When the client sent the last byte. */
  lastByteSentAt?: number
  response?: ServerResponse
  isDuringDrain?: boolean
  /** Whether this was the last queued request when the head of its response was sent. */
  isLast?: boolean
  /** The expected status or error code, if a fault determines it. */
  expectedCode?: number
  /** The status or error code of the response. */
  receivedCode?: number
  /** The status that `onResponse` reported. */
  reportedStatus?: number
  /** Whether the response may be truncated. */
  mayBeTruncated?: boolean
}

/** State of the server that all clients share. */
export interface ServerState {
  readonly stallTimeoutMs: number
  readonly headersTimeoutMs: number
  isThrottled: boolean
  isDraining: boolean
  /** Whether the drain timeout has passed. */
  isAborting: boolean
  /** The number of requests from all clients. */
  requestCount: number
}

/** Checks the rules for the requests and responses of one connection. */
export abstract class ConnectionChecker {
  readonly requests: SentRequest[] = []
  abstract readonly wire: SimulatedSocket
  readonly world: Simulation
  readonly serverState: ServerState
  /** Bytes sent by the client. */
  sentBytes = 0
  /** Bytes read by the server. */
  readBytes = 0
  /** Whether the guard was active at the last read. */
  isReadThrottled = false
  /** Requests emitted by Node. */
  emittedCount = 0
  /** Requests that the server has started to handle. */
  startedCount = 0
  responseCount = 0
  /** Rejections on the bare connection, as reported by the server and as received by the client. */
  reportedRejections = 0
  receivedRejections = 0
  /** The event-loop tick in which the last request started. */
  #lastTick = 0
  /** Whether a response with `Connection: close` was received. */
  isClosing = false
  /** Sends the second part of a split action. */
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

  /** The number of queued requests. */
  get queuedCount(): number {
    return this.emittedCount - this.startedCount
  }

  /** The request that the server is reading. */
  get current(): SentRequest | undefined {
    return this.requests.find(({ end, kind }) => end > this.readBytes || REQUEST_KINDS[kind]!.isUnterminated)
  }

  /** Whether Node considers the connection idle. */
  get isIdle(): boolean {
    const { response } = this.requests[this.startedCount - 1] ?? {}
    return this.readBytes > 0 && this.current?.firstByteReadAt === undefined && response?.writableEnded !== false
  }

  /** Called when Node emits a request. */
  onRequestEvent(): void {
    this.emittedCount++
    const { response } = this.requests[this.startedCount - 1] ?? {}
    if (response?.headersSent === false) this.requests[this.startedCount - 1]!.isLast = false
  }

  /** Called when the server reads from the connection. */
  onServerRead(bytes: number): void {
    this.isReadThrottled = this.serverState.isThrottled
    const mustPause = this.wire.isDelivering || this.isReadThrottled
    // During a drain, a request starts one tick after its turn.
    const isRunning = this.requests[this.startedCount - 1]?.response?.writableEnded === false
    const queuedCount = this.serverState.isDraining && !isRunning ? this.queuedCount - 1 : this.queuedCount
    this.check(queuedCount <= 0 || !mustPause, 'nothing is read while a request is queued')
    this.readBytes += bytes
    for (const request of this.requests) if (request.start < this.readBytes) request.firstByteReadAt ??= this.now
  }

  /** Called when the server starts to handle a request. */
  startRequest(number: number, response: ServerResponse): SentRequest {
    const request = this.requests[this.startedCount++]!
    this.world.log('starts', number, request.kind)
    this.check(request.number === number, 'requests start in order:', number)
    this.check(!this.isClosing, 'no request starts after a response that closes the connection:', number)
    const previous = this.requests[this.startedCount - 2]?.response
    this.check(previous?.writableEnded !== false, 'a request starts after the response to the previous one:', number)
    const { loopCount } = this.world.time
    this.check(this.#lastTick !== loopCount, 'at most one request of a connection starts per tick:', number)
    this.#lastTick = loopCount
    request.response = response
    request.isDuringDrain = this.serverState.isDraining
    request.isLast = this.queuedCount === 0
    return request
  }

  onResponse({ status, headers, body }: RawResponse): void {
    if (status === 100) {
      this.check(
        this.requests[this.responseCount]?.kind === 'expect',
        '100 Continue is only sent to a client that expects it',
      )
      this.sendRemainder?.()
      return
    }
    const request = this.requests[this.responseCount++]
    const number = headers.get('x-number')
    const closesConnection = headers.get('connection') === 'close'
    const code = body.startsWith('{"error"') ? (JSON.parse(body) as { error: number }).error : status
    this.world.log('response', request?.number, code, closesConnection ? 'closes' : '')
    this.check(request !== undefined, 'no response is sent without a request:', code)
    this.check(!this.isClosing, 'nothing follows a response that closes the connection:', code)
    if (request === undefined) return
    request.receivedCode = code
    if (number === undefined) this.receivedRejections++
    else this.check(Number(number) === request.number, 'responses arrive in order:', number, request.number)
    this.check(
      this.#isExpected(request, code, number === undefined),
      'each request gets the expected response:',
      request.number,
      code,
    )
    if (closesConnection) this.isClosing = true
    const laterRequests = this.requests.slice(this.responseCount)
    this.check(
      !closesConnection || laterRequests.every(({ response }) => !response),
      'no later request has run before a response that closes the connection',
    )
    this.check(
      closesConnection || !REQUEST_KINDS[request.kind]!.closesConnection,
      'this kind of response closes the connection:',
      request.number,
    )
    const { isDuringDrain, isLast } = request
    const mustClose = isDuringDrain === true && isLast === true
    this.check(
      closesConnection || !mustClose,
      'during a drain, the last response closes the connection:',
      request.number,
    )
    const mayClose = code >= 400 || REQUEST_KINDS[request.kind]!.closesConnection === true || isLast !== false
    this.check(
      !closesConnection || mayClose,
      'a drain does not close a connection before its last response:',
      request.number,
    )
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
