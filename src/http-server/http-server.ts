import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HTTP_ERRORS, HttpError } from '../legacy/http/errors.ts'
import { headerValuesOf, hasTooManyFields, isValidHost } from '../legacy/http/header-fields.ts'
import { addHeaders } from '../legacy/http/respond.ts'
import { isWritable } from '../legacy/http/transport.ts'
import { runInOrder, isPaused, stopReading, type QueuedRequest } from '../legacy/http/request-queue.ts'
import { callSafely } from '../legacy/maybe-promise.ts'
import { setImmediate, setTimeout } from '../legacy/timers.ts'
import {
  getConnection,
  closeStalled,
  trackResponse,
  isBodyBufferFull,
  isRequestComplete,
  trackConnections,
  type Connection,
} from './connections.ts'
import { closeAfterResponse, createDrain, restoreKeepAlive } from './drain.ts'
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

/** Settings that `plant-store/server` doesn't expose. */
interface ServerInternals {
  /**
   * Makes requests without a body faster (Node 24.12 and later) by skipping their stream events. The listener must not
   * wait for these events. Default false.
   */
  readonly optimizeEmptyRequests?: boolean
  /** How long the overload guard remains active after the last sign of overload, in milliseconds. For tests. */
  readonly guardCooldownMs?: number
}

const DEFAULT_INTERNALS: Required<ServerInternals> = { optimizeEmptyRequests: false, guardCooldownMs: 60_000 }

/** The parsed head of a request. For a request that `node:http` rejected, only `socket` is defined. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'socket'> & {
  readonly rawHeaders: string[] | undefined
}

/** Returns the header fields to add to the response to a request, as [name, value, name, value…]. */
export type GetCommonFields = (request: RequestHead) => readonly string[]

export interface Observer {
  readonly onRequest: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** Called for each request that is rejected on the bare connection, without a `ServerResponse`. */
  readonly onRejection: ((error: HttpError, request: RequestHead) => void) | undefined
  /** Called after each response that the server sends itself, without calling the listener. */
  readonly onResponse: OnResponse | undefined
  readonly onOverloadChange: ((isActive: boolean) => void) | undefined
}

const NO_OBSERVER: Observer = {
  onRequest: undefined,
  onRejection: undefined,
  onResponse: undefined,
  onOverloadChange: undefined,
}

/** An HTTP server with timeouts, JSON error responses and graceful shutdown. */
export interface PlantServer {
  /** The `node:http` server. It doesn't listen until you call `listen()`. */
  readonly server: Server
  /**
   * Shuts down gracefully: closes each connection after its last pending response, and resolves once the server and all
   * connections are closed. Connections that are still open after `drainTimeoutMs` are destroyed. Upgraded connections
   * are yours to close before then. Later calls return the same promise.
   * @returns the number of connections that were destroyed
   */
  readonly drain: () => Promise<number>
  /** Returns the number of open connections. */
  readonly connectionCount: () => number
  /** Calls `drain()` at the end of an `await using` scope. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export interface HttpServer extends Omit<PlantServer, typeof Symbol.asyncDispose> {
  /** @param isPortShared whether another process accepts new connections on the same port; default false */
  readonly drain: (isPortShared?: boolean) => Promise<number>
  readonly isThrottled: () => boolean
}

export function createHttpServer(
  listener: RequestListener,
  options: Partial<Limits> & ServerInternals = {},
  getCommonFields: GetCommonFields = () => [],
  { onRequest, onRejection, onResponse, onOverloadChange }: Observer = NO_OBSERVER,
): HttpServer {
  const limits = { ...DEFAULT_LIMITS, ...DEFAULT_INTERNALS, ...options }
  const { requestTimeoutMs } = limits

  const server = createServer({
    headersTimeout: Math.min(limits.headersTimeoutMs, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node's own response to a request without Host has no body. findHostProblem() checks Host instead.
    requireHostHeader: false,
    // Overrides `--insecure-http-parser`, which accepts Content-Length together with Transfer-Encoding.
    insecureHTTPParser: false,
    optimizeEmptyRequests: limits.optimizeEmptyRequests,
  })
  // The service rejects requests with 1,000 or more header fields. With a lower maximum here, Node could silently drop
  // a second Authorization.
  server.maxHeadersCount = 1001
  server.maxConnections = limits.maxConnections
  // A client may half-close its connection after its last request. By default, Node would then drop the pending
  // responses.
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
    // If a request has an Upgrade header, Node treats the end of the connection as the end of the body.
    socket.on('end', () => {
      if (!isRequestComplete(getConnection(socket)!)) server.emit('clientError', new Error(), socket)
    })
  })
  closeStalled(server, connections, limits.stallTimeoutMs)
  const drain = createDrain(server, connections, limits.drainTimeoutMs, (socket) =>
    rejectSocket(socket, HTTP_ERRORS.requestTimeout),
  )

  server.on('request', (request: IncomingMessage, response: ServerResponse) =>
    queueRequest(request, response, listener),
  )
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node emits `checkContinue` for any value that contains `100-continue`.
    const expectations = headerValuesOf(request.rawHeaders, 'expect').flatMap((value) => value.split(','))
    if (expectations.some((value) => value.trim().toLowerCase() !== '100-continue')) {
      return void server.emit('checkExpectation', request, response)
    }
    // Once the response is sent, Node reads the body only to discard it, so the client doesn't need to send it.
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
    const dispatch = drain.isActive() ? dispatchLater : dispatchRequest
    if (runInOrder({ request, response, listener }, dispatch) || dispatch === dispatchLater) guard.enqueue(connection)
  }

  /**
   * Runs a request in the next tick. During a drain, this lets the last request in a packet be the one that closes the
   * connection.
   */
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
    // If more requests are queued on this connection, the connection closes after the last of them.
    if (drain.isActive() && connection.latestResponse === response) closeAfterResponse(connection, response)
    const problem = findHostProblem(request)
    if (problem === undefined) listener(request, response)
    else rejectRequest(request, response, new HttpError('malformedRequest', problem))
  }

  function rejectRequest(request: IncomingMessage, response: ServerResponse, error: HttpError): void {
    response.setHeader('Connection', 'close')
    // Unlike closeAfterResponse(), this closes the connection even if another request arrives first.
    getConnection(request.socket)!.closingResponse = undefined
    sendResponse(request, response, error, onResponse)
  }

  function rejectSocket(socket: Socket, error: HttpError, request?: RequestHead): void {
    if (!socket.writable) return
    // Browsers open connections in advance. Without a request, there is nothing to respond to.
    if (socket.bytesRead === 0) return void socket.destroy()
    // No request handler on the stack would catch an error from getCommonFields() or onRejection().
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
    // Bytes that Node has already buffered might trigger a second `clientError`.
    if (connection === undefined || connection.isRejected) return
    if (isTimeout(error)) rejectIfLate(connection, error)
    else rejectConnection(connection, error)
  })

  function rejectConnection(connection: Connection, error: Error): void {
    const { latestResponse, socket } = connection
    connection.isRejected = true
    stopReading(socket)
    // After a half-close, Node's own `end` listener would close the connection before the rejection is sent.
    socket.removeAllListeners('end')
    const rejectNow = (): void => rejectSocket(socket, toHttpError(error))
    if (latestResponse?.req.complete === false) rejectOnBodyRead(latestResponse, socket, requestTimeoutMs, rejectNow)
    else rejectAfterResponse(latestResponse, rejectNow)
  }

  /** Rejects a late request, unless its header or body, whichever is late, arrives within `delayMs`. */
  function rejectIfLate(connection: Connection, error: Error, delayMs = getGraceMs(connection)) {
    const { requestCount, socket } = connection
    const wasComplete = isRequestComplete(connection)
    function checkAgain(): void {
      if (connection.isRejected || connection.isUpgraded || socket.destroyed) return
      const isComplete = isRequestComplete(connection)
      const hasProgressed = connection.requestCount > requestCount || isComplete !== wasComplete
      // The header arrived in the meantime. Node checks each request only once, so the body has to be timed here.
      const isBodyPending = hasProgressed && !isComplete
      // The missing data might have arrived without this server having read it yet.
      const isUnread = !hasProgressed && hasUnreadInput(connection)
      const isLate = !hasProgressed && !isUnread
      if (isBodyPending || isUnread) rejectIfLate(connection, error, requestTimeoutMs)
      else if (isLate) rejectConnection(connection, error)
    }
    // Node runs its check before it reads the data that arrived while the process was busy.
    setTimeout(setImmediate, delayMs, checkAgain).unref()
  }

  // A client isn't late if its data has arrived but the server hasn't read it. The grace period limits how long a slow
  // listener can hold off the timeout.
  const getGraceMs = (connection: Connection): number =>
    hasUnreadInput(connection) || isBodyBufferFull(connection.latestResponse?.req) ? requestTimeoutMs : 0

  // CONNECT requests are meant for proxies. Without a `connect` listener, Node closes the connection without a
  // response.
  server.on('connect', (request: IncomingMessage, stream: Duplex) => {
    const connection = getConnection(stream)!
    const { socket } = connection
    connection.isRejected = true
    stopReading(socket)
    // Node removes its own socket listeners before it emits `connect`. A list that is still being sent needs the
    // `drain` listener.
    socket
      .on('error', () => socket.destroy())
      .on('timeout', () => server.emit('timeout', socket))
      .on('drain', () => connection.currentResponse?.emit('drain'))
    const error = new HttpError('malformedRequest', 'This server is not a proxy.')
    rejectAfterResponse(connection.latestResponse, () => rejectSocket(socket, error, request))
  })

  return {
    server,
    connectionCount: () => connections.length,
    isThrottled: guard.isActive,
    drain: (isPortShared = false) => drain.start(isPortShared),
  }
}

/**
 * Whether a connection has, or may have, data that this server hasn't read yet because other requests had their turn
 * first.
 */
const hasUnreadInput = ({ latestResponse, socket }: Connection): boolean =>
  isPaused(socket) || (socket.readableLength > 0 && !isBodyBufferFull(latestResponse?.req))

function findHostProblem({ httpVersionMinor, rawHeaders }: IncomingMessage): string | undefined {
  const [host, another] = headerValuesOf(rawHeaders, 'host')
  if (another !== undefined) return 'The request has more than one Host field.'
  if (host !== undefined) return isValidHost(host) ? undefined : 'The Host field is not a valid host.'
  // If there are too many fields, Node might have dropped Host.
  return httpVersionMinor === 0 || hasTooManyFields(rawHeaders) ? undefined : 'The request has no Host field.'
}
