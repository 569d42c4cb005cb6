import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HTTP_ERRORS, HttpError } from '../http/errors.ts'
import { headerValuesOf, hasTooManyFields, isValidHost } from '../http/header-fields.ts'
import { addHeaders, hasAmbiguousFraming } from '../http/respond.ts'
import { isWritable } from '../http/transport.ts'
import { runInOrder, isPaused, stopReading, type QueuedRequest } from '../http/request-queue.ts'
import { callSafely } from '../maybe-promise.ts'
import { setImmediate, setTimeout } from '../timers.ts'
import {
  getConnection,
  closeStalled,
  trackResponse,
  isBodyBufferFull,
  isRequestComplete,
  trackConnections,
  type Connection,
} from './connections.ts'
import { drainServer } from './drain.ts'
import { createOverloadGuard } from './overload-guard.ts'
import { DEFAULT_LIMITS, type Limits } from './limits.ts'
import {
  sendResponse,
  beforeFirstRead,
  isTimeout,
  sendRejection,
  rejectAfterResponse,
  rejectOnBodyRead,
  toHttpError,
  type OnResponse,
} from './reject.ts'

/** What a server takes for granted of its listener, and what only tests change. */
export interface ServerInternals {
  /** It waits for no event of a request without a body. From Node 24.12 on, such requests then take less time. */
  readonly optimizeEmptyRequests?: boolean
  readonly guardCooldownMs?: number
}

const ASSUMPTIONS: Required<ServerInternals> = { optimizeEmptyRequests: false, guardCooldownMs: 60_000 }

/** What is known of a request: only its connection if `node:http` itself refused it. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'socket'> & {
  readonly rawHeaders: string[] | undefined
}

/** Makes the header fields that every response to a request must have: name, value, name, value… */
export type GetCommonFields = (request: RequestHead) => readonly string[]

export interface Observer {
  readonly onRequest: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** A request was refused on a bare connection. */
  readonly onRejection: ((error: HttpError, request: RequestHead) => void) | undefined
  /** The server itself has answered a request. */
  readonly onResponse: OnResponse | undefined
  readonly onOverloadChange: ((isActive: boolean) => void) | undefined
}

const NO_OBSERVER: Observer = {
  onRequest: undefined,
  onRejection: undefined,
  onResponse: undefined,
  onOverloadChange: undefined,
}

/** A server that keeps its time-outs, refuses in JSON, and can be drained. */
export interface PlantServer {
  /** Listens when its host tells it to. */
  readonly server: Server
  /**
   * Ends every connection after its next response, and settles once the server and all connections are closed. What is
   * not closed after `drainTimeoutMs` is cut. One that was upgraded is its listener's to close.
   * @returns how many connections were cut
   */
  readonly drain: () => Promise<number>
  /** How many connections are open. */
  readonly connectionCount: () => number
  /** Drains at the end of an `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export interface HttpServer extends Omit<PlantServer, typeof Symbol.asyncDispose> {
  /** @param isPortShared whether another process takes the connections that come later; default false */
  readonly drain: (isPortShared?: boolean) => Promise<number>
  readonly isThrottled: () => boolean
}

export function createHttpServer(
  listener: RequestListener,
  options: Partial<Limits> & ServerInternals = {},
  getCommonFields: GetCommonFields = () => [],
  { onRequest, onRejection, onResponse, onOverloadChange }: Observer = NO_OBSERVER,
): HttpServer {
  const limits = { ...DEFAULT_LIMITS, ...ASSUMPTIONS, ...options }
  const { requestTimeoutMs } = limits
  let draining: Promise<number> | undefined

  const server = createServer({
    headersTimeout: Math.min(limits.headersTimeoutMs, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Otherwise Node itself answers a request without Host, and without a body.
    requireHostHeader: false,
    // Otherwise `--insecure-http-parser` would admit a Content-Length next to a Transfer-Encoding.
    insecureHTTPParser: false,
    optimizeEmptyRequests: limits.optimizeEmptyRequests,
  })
  // The service refuses 1,000 fields. A lower number here would let Node drop a second Authorization silently.
  server.maxHeadersCount = 1001
  server.maxConnections = limits.maxConnections
  // A client may end its side once it has asked. Otherwise Node would drop the responses to it.
  Object.assign(server, { httpAllowHalfOpen: true })

  const connections = trackConnections(server)
  const guard = createOverloadGuard(
    server,
    connections,
    (isActive) => onOverloadChange?.(isActive),
    limits.guardCooldownMs,
  )
  server.on('connection', (socket: Socket) => {
    guard.watch(getConnection(socket)!)
    // If a request asks for an upgrade, Node takes the end of its connection for the end of its body.
    socket.on('end', () => {
      if (!isRequestComplete(getConnection(socket)!)) server.emit('clientError', new Error(), socket)
    })
  })
  closeStalled(server, connections, limits.stallTimeoutMs)

  server.on('request', (request: IncomingMessage, response: ServerResponse) =>
    queueRequest(request, response, listener),
  )
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node emits this for any value that contains `100-continue`.
    const expectations = headerValuesOf(request.rawHeaders, 'expect').flatMap((value) => value.split(','))
    if (expectations.some((value) => value.trim().toLowerCase() !== '100-continue')) {
      return void server.emit('checkExpectation', request, response)
    }
    // After a response, the body is read only to discard what the client sends nevertheless.
    beforeFirstRead(request, () => {
      if (!response.headersSent) response.writeContinue()
    })
    queueRequest(request, response, listener)
  })
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    queueRequest(request, response, () => rejectRequest(request, response, HTTP_ERRORS.expectationFailed))
  })

  function queueRequest(request: IncomingMessage, response: ServerResponse, listener: RequestListener): void {
    const connection = getConnection(request.socket)!
    restoreKeepAlive(connection)
    trackResponse(connection, response)
    guard.check()
    const dispatch = draining === undefined ? dispatchRequest : dispatchLater
    if (runInOrder({ request, response, listener }, dispatch) || dispatch === dispatchLater) guard.enqueue(connection)
  }

  /** Waits for the requests that the same packet brings: during a drain, the connection closes after the last one. */
  function dispatchLater(queued: Parameters<typeof dispatchRequest>[0]): void {
    setImmediate(() => isWritable(queued.request.socket) && dispatchRequest(queued, true))
  }

  function dispatchRequest(
    { request, response, listener }: QueuedRequest & { listener: RequestListener },
    hasWaited: boolean,
  ): void {
    const connection = getConnection(request.socket)!
    if (hasWaited) guard.dequeue(connection)
    connection.currentResponse = response
    addHeaders(response, getCommonFields(request))
    onRequest?.(request, response)
    // If requests wait behind this one, the connection closes after the last of them.
    if (draining !== undefined && connection.latestResponse === response) closeAfterResponse(connection, response)
    const problem = findHostProblem(request)
    if (problem === undefined) listener(request, response)
    else rejectRequest(request, response, new HttpError('malformedRequest', problem))
  }

  function rejectRequest(request: IncomingMessage, response: ServerResponse, error: HttpError): void {
    response.setHeader('Connection', 'close')
    // The connection closes after this response, even if more requests arrive.
    getConnection(request.socket)!.closingResponse = undefined
    sendResponse(request, response, error, onResponse)
  }

  function rejectSocket(socket: Socket, error: HttpError, request?: RequestHead): void {
    if (!socket.writable) return
    // A connection that has asked nothing, as browsers open some in advance, has no request that could be refused.
    if (socket.bytesRead === 0) return void socket.destroy()
    // No request of a client stands behind this, so nobody else would catch what is thrown.
    callSafely(
      () => {
        const head = request ?? { socket, rawHeaders: undefined, method: undefined, url: undefined }
        sendRejection(socket, error, getCommonFields(head))
        onRejection?.(error, head)
      },
      () => socket.destroy(),
    )
  }

  server.on('clientError', (error: Error, stream) => {
    const connection = getConnection(stream)
    // What Node had read already may be a second error.
    if (connection === undefined || connection.isRejected) return
    if (isTimeout(error)) rejectIfLate(connection, error)
    else rejectConnection(connection, error)
  })

  function rejectConnection(connection: Connection, error: Error): void {
    const { latestResponse, socket } = connection
    connection.isRejected = true
    stopReading(socket)
    // If the client has ended its side, Node would close the connection behind the response that is under way.
    socket.removeAllListeners('end')
    const rejectNow = (): void => rejectSocket(socket, toHttpError(error))
    if (latestResponse?.req.complete === false) rejectOnBodyRead(latestResponse, socket, requestTimeoutMs, rejectNow)
    else rejectAfterResponse(latestResponse, rejectNow)
  }

  /** Refuses a client whose header or body is late, if it has not come after so long either. */
  function rejectIfLate(connection: Connection, error: Error, delayMs = getGraceMs(connection)) {
    const { requestCount, socket } = connection
    const wasComplete = isRequestComplete(connection)
    function checkAgain(): void {
      if (connection.isRejected || connection.isUpgraded || socket.destroyed) return
      const hasProgressed = connection.requestCount > requestCount || isRequestComplete(connection) !== wasComplete
      // Node looks at no request twice, and the body may be late as well.
      if (hasProgressed ? !isRequestComplete(connection) : hasUnreadInput(connection))
        rejectIfLate(connection, error, requestTimeoutMs)
      else if (!hasProgressed) rejectConnection(connection, error)
    }
    // Node looks before it reads what came while the process was busy.
    setTimeout(setImmediate, delayMs, checkAgain).unref()
  }

  // A listener that reads late has made its client late too, but not for as long as it likes.
  const getGraceMs = (connection: Connection): number =>
    hasUnreadInput(connection) || isBodyBufferFull(connection.latestResponse?.req) ? requestTimeoutMs : 0

  // CONNECT asks for a proxy. Without a listener, Node cuts the connection without a response.
  server.on('connect', (request: IncomingMessage, stream: Duplex) => {
    const connection = getConnection(stream)!
    const { socket } = connection
    connection.isRejected = true
    stopReading(socket)
    // Node has removed its own listeners, and a list that is being sent waits for `drain`.
    socket
      .on('error', () => socket.destroy())
      .on('timeout', () => server.emit('timeout', socket))
      .on('drain', () => connection.currentResponse?.emit('drain'))
    const error = new HttpError('malformedRequest', 'This service is no proxy.')
    rejectAfterResponse(connection.latestResponse, () => rejectSocket(socket, error, request))
  })

  function startDrain(isPortShared: boolean): Promise<number> {
    for (const connection of connections) {
      if (connection.latestResponse?.headersSent === false) closeAfterResponse(connection, connection.latestResponse)
    }
    const rejectIdle = (socket: Socket): void => rejectSocket(socket, HTTP_ERRORS.requestTimeout)
    return drainServer(server, connections, limits.drainTimeoutMs, isPortShared, rejectIdle)
  }

  return {
    server,
    connectionCount: () => connections.length,
    isThrottled: guard.isActive,
    drain: (isPortShared = false) => (draining ??= startDrain(isPortShared)),
  }
}

/** Closes a connection after a response, unless another request arrives before the response is sent. */
function closeAfterResponse(connection: Connection, response: ServerResponse): void {
  response.setHeader('Connection', 'close')
  connection.closingResponse = response
}

/** Keeps a connection open for another request, unless the request before it can have ended elsewhere for a proxy. */
function restoreKeepAlive({ closingResponse }: Connection): void {
  if (closingResponse?.headersSent === false && !hasAmbiguousFraming(closingResponse.req))
    closingResponse.setHeader('Connection', 'keep-alive')
}

/** Whether a request may be late because nothing was read while others had their turns. */
const hasUnreadInput = ({ latestResponse, socket }: Connection): boolean =>
  isPaused(socket) || (socket.readableLength > 0 && !isBodyBufferFull(latestResponse?.req))

function findHostProblem({ httpVersionMinor, rawHeaders }: IncomingMessage): string | undefined {
  const [host, another] = headerValuesOf(rawHeaders, 'host')
  if (another !== undefined) return 'The request has more than one Host field.'
  if (host !== undefined) return isValidHost(host) ? undefined : 'The Host field is not a host.'
  // Node may have dropped it.
  return httpVersionMinor === 0 || hasTooManyFields(rawHeaders) ? undefined : 'The request has no Host field.'
}
