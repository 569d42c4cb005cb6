import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HTTP_ERRORS, HttpError } from '../http/errors.ts'
import { fieldsOf, hasTooManyFields, isHost } from '../http/header-fields.ts'
import { addFields, isEndUncertain } from '../http/respond.ts'
import { isWritable } from '../http/transport.ts'
import { inTurn, isHeldBack, stopReading, type Arrival } from '../http/turn.ts'
import { attempt } from '../maybe-promise.ts'
import { setImmediate, setTimeout } from '../timers.ts'
import {
  connectionOf,
  cutStalled,
  hold,
  isBodyWaiting,
  isWhole,
  keepConnections,
  type Connection,
} from './connections.ts'
import { closeServer } from './drain.ts'
import { createGuard } from './guard.ts'
import { PRESETS, type Limits } from './limits.ts'
import {
  answer,
  beforeFirstRead,
  isTimeout,
  refuse,
  refuseAfter,
  refuseInstead,
  toHttpError,
  type OnAnswer,
} from './refusal.ts'

/** What a server takes for granted of its listener, and what only tests change. */
export interface Assumptions {
  /** It waits for no event of a request without a body. From Node 24.12 on, such requests then take less time. */
  readonly optimizeEmptyRequests?: boolean
  readonly guardMs?: number
}

const ASSUMPTIONS: Required<Assumptions> = { optimizeEmptyRequests: false, guardMs: 60_000 }

/** What is known of a request: only its connection if `node:http` itself refused it. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'socket'> & {
  readonly rawHeaders: string[] | undefined
}

/** Makes the header fields that every response to a request must have: name, value, name, value… */
export type CommonFields = (request: RequestHead) => readonly string[]

export interface Observer {
  readonly onRequest: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** A request was refused on a bare connection. */
  readonly onRefusal: ((error: HttpError, request: RequestHead) => void) | undefined
  /** The server itself has answered a request. */
  readonly onAnswer: OnAnswer | undefined
  readonly onGuard: ((isAwake: boolean) => void) | undefined
}

const NO_OBSERVER: Observer = {
  onRequest: undefined,
  onRefusal: undefined,
  onAnswer: undefined,
  onGuard: undefined,
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
  /** @param isShared whether another process takes the connections that come later; default false */
  readonly drain: (isShared?: boolean) => Promise<number>
  readonly isGuarded: () => boolean
}

export function createHttpServer(
  listener: RequestListener,
  options: Partial<Limits> & Assumptions = {},
  commonFields: CommonFields = () => [],
  { onRequest, onRefusal, onAnswer, onGuard }: Observer = NO_OBSERVER,
): HttpServer {
  const limits = { ...PRESETS, ...ASSUMPTIONS, ...options }
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

  const connections = keepConnections(server)
  const guard = createGuard(server, connections, (isAwake) => onGuard?.(isAwake), limits.guardMs)
  server.on('connection', (socket: Socket) => {
    guard.admit(connectionOf(socket)!)
    // If a request asks for an upgrade, Node takes the end of its connection for the end of its body.
    socket.on('end', () => {
      if (!isWhole(connectionOf(socket)!)) server.emit('clientError', new Error(), socket)
    })
  })
  cutStalled(server, connections, limits.stallTimeoutMs)

  server.on('request', (request: IncomingMessage, response: ServerResponse) => receive(request, response, listener))
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node emits this for any value that contains `100-continue`.
    const expectations = fieldsOf(request.rawHeaders, 'expect').flatMap((value) => value.split(','))
    if (expectations.some((value) => value.trim().toLowerCase() !== '100-continue')) {
      return void server.emit('checkExpectation', request, response)
    }
    // After a response, the body is read only to discard what the client sends nevertheless.
    beforeFirstRead(request, () => {
      if (!response.headersSent) response.writeContinue()
    })
    receive(request, response, listener)
  })
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    receive(request, response, () => refuseRequest(request, response, HTTP_ERRORS.expectationFailed))
  })

  function receive(request: IncomingMessage, response: ServerResponse, listener: RequestListener): void {
    const connection = connectionOf(request.socket)!
    keepOpen(connection)
    hold(connection, response)
    guard.look()
    const run = draining === undefined ? take : takeLater
    if (inTurn({ request, response, listener }, run) || run === takeLater) guard.wait(connection)
  }

  /** Waits for the requests that the same packet brings: during a drain, the connection closes after the last one. */
  function takeLater(arrival: Parameters<typeof take>[0]): void {
    setImmediate(() => isWritable(arrival.request.socket) && take(arrival, true))
  }

  function take({ request, response, listener }: Arrival & { listener: RequestListener }, hasWaited: boolean): void {
    const connection = connectionOf(request.socket)!
    if (hasWaited) guard.goOn(connection)
    connection.current = response
    addFields(response, commonFields(request))
    onRequest?.(request, response)
    // If requests wait behind this one, the connection closes after the last of them.
    if (draining !== undefined && connection.latest === response) closeAfter(connection, response)
    const problem = findHostProblem(request)
    if (problem === undefined) listener(request, response)
    else refuseRequest(request, response, new HttpError('malformedRequest', problem))
  }

  function refuseRequest(request: IncomingMessage, response: ServerResponse, error: HttpError): void {
    response.setHeader('Connection', 'close')
    // The connection closes after this response, even if more requests arrive.
    connectionOf(request.socket)!.last = undefined
    answer(request, response, error, onAnswer)
  }

  function refuseOn(socket: Socket, error: HttpError, request?: RequestHead): void {
    if (!socket.writable) return
    // A connection that has asked nothing, as browsers open some in advance, has no request that could be refused.
    if (socket.bytesRead === 0) return void socket.destroy()
    // No request of a client stands behind this, so nobody else would catch what is thrown.
    attempt(
      () => {
        const head = request ?? { socket, rawHeaders: undefined, method: undefined, url: undefined }
        refuse(socket, error, commonFields(head))
        onRefusal?.(error, head)
      },
      () => socket.destroy(),
    )
  }

  server.on('clientError', (error: Error, stream) => {
    const connection = connectionOf(stream)
    // What Node had read already may be a second error.
    if (connection === undefined || connection.isBroken) return
    if (isTimeout(error)) refuseIfLate(connection, error)
    else refuseConnection(connection, error)
  })

  function refuseConnection(connection: Connection, error: Error): void {
    const { latest, socket } = connection
    connection.isBroken = true
    stopReading(socket)
    // If the client has ended its side, Node would close the connection behind the response that is under way.
    socket.removeAllListeners('end')
    const refuseNow = (): void => refuseOn(socket, toHttpError(error))
    if (latest?.req.complete === false) refuseInstead(latest, socket, requestTimeoutMs, refuseNow)
    else refuseAfter(latest, refuseNow)
  }

  /** Refuses a client whose header or body is late, if it has not come after so long either. */
  function refuseIfLate(connection: Connection, error: Error, ms = graceOf(connection)) {
    const { requests, socket } = connection
    const wasWhole = isWhole(connection)
    function look(): void {
      if (connection.isBroken || connection.isUpgraded || socket.destroyed) return
      const hasMoved = connection.requests > requests || isWhole(connection) !== wasWhole
      // Node looks at no request twice, and the body may be late as well.
      if (hasMoved ? !isWhole(connection) : isUnread(connection)) refuseIfLate(connection, error, requestTimeoutMs)
      else if (!hasMoved) refuseConnection(connection, error)
    }
    // Node looks before it reads what came while the process was busy.
    setTimeout(setImmediate, ms, look).unref()
  }

  // A listener that reads late has made its client late too, but not for as long as it likes.
  const graceOf = (connection: Connection): number =>
    isUnread(connection) || isBodyWaiting(connection.latest?.req) ? requestTimeoutMs : 0

  // CONNECT asks for a proxy. Without a listener, Node cuts the connection without a response.
  server.on('connect', (request: IncomingMessage, stream: Duplex) => {
    const connection = connectionOf(stream)!
    const { socket } = connection
    connection.isBroken = true
    stopReading(socket)
    // Node has removed its own listeners, and a list that is being sent waits for `drain`.
    socket
      .on('error', () => socket.destroy())
      .on('timeout', () => server.emit('timeout', socket))
      .on('drain', () => connection.current?.emit('drain'))
    const error = new HttpError('malformedRequest', 'This service is no proxy.')
    refuseAfter(connection.latest, () => refuseOn(socket, error, request))
  })

  function close(isShared: boolean): Promise<number> {
    for (const connection of connections) {
      if (connection.latest?.headersSent === false) closeAfter(connection, connection.latest)
    }
    const refuseLate = (socket: Socket): void => refuseOn(socket, HTTP_ERRORS.requestTimeout)
    return closeServer(server, connections, limits.drainTimeoutMs, isShared, refuseLate)
  }

  return {
    server,
    connectionCount: () => connections.length,
    isGuarded: guard.isAwake,
    drain: (isShared = false) => (draining ??= close(isShared)),
  }
}

/** Closes a connection after a response, unless another request arrives before the response is sent. */
function closeAfter(connection: Connection, response: ServerResponse): void {
  response.setHeader('Connection', 'close')
  connection.last = response
}

/** Keeps a connection open for another request, unless the request before it can have ended elsewhere for a proxy. */
function keepOpen({ last }: Connection): void {
  if (last?.headersSent === false && !isEndUncertain(last.req)) last.setHeader('Connection', 'keep-alive')
}

/** Whether a request may be late because nothing was read while others had their turns. */
const isUnread = ({ latest, socket }: Connection): boolean =>
  isHeldBack(socket) || (socket.readableLength > 0 && !isBodyWaiting(latest?.req))

function findHostProblem({ httpVersionMinor, rawHeaders }: IncomingMessage): string | undefined {
  const [host, another] = fieldsOf(rawHeaders, 'host')
  if (another !== undefined) return 'The request has more than one Host field.'
  if (host !== undefined) return isHost(host) ? undefined : 'The Host field is not a host.'
  // Node may have dropped it.
  return httpVersionMinor === 0 || hasTooManyFields(rawHeaders) ? undefined : 'The request has no Host field.'
}
