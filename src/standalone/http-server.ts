import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { HttpError } from '../http/errors.ts'
import { isHost } from '../http/header-fields.ts'
import { addFields, respond } from '../http/respond.ts'
import { errorResponse } from '../http/response.ts'
import { inTurn, isHeldBack, stopReading } from '../http/turn.ts'
import { attempt } from '../maybe-promise.ts'
import { closeServer } from './drain.ts'
import { createGate } from './gate.ts'
import { isTimeout, refuse, refuseAfter, refuseInstead, toHttpError } from './refusal.ts'
import { readInSlices } from './slices.ts'
import { cutStalled } from './stall.ts'

/** The time-outs and limits of a server. */
export interface Limits {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly minBytesPerSecond: number
  readonly checkIntervalMs: number
  readonly drainTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxConnections: number
}

/** What a server takes for granted of its listener. */
export interface Shortcuts {
  /** It waits for no event of a request without a body. From Node 24.12 on, such requests then take less time. */
  readonly optimizeEmptyRequests?: boolean
}

export const DEFAULT_LIMITS: Limits = {
  // A client that means well sends its header at once. This leaves time for packets that are lost twice.
  headersTimeoutMs: 10_000,
  // Enough for a body of 64 KiB at 20 kbit/s.
  requestTimeoutMs: 30_000,
  // Shorter than a drain, so that idle connections close by themselves. Behind a proxy it must exceed the time-out of
  // the proxy, or the proxy may send a request just as the connection closes.
  keepAliveTimeoutMs: 5000,
  stallTimeoutMs: 30_000,
  // Less than any client needs that a person waits for, and enough to end one that only holds its connection.
  minBytesPerSecond: 1024,
  // With Node's default of 30 s a late request would live far beyond its time-out.
  checkIntervalMs: 500,
  // Well within the 30 s that Kubernetes waits before it kills a process.
  drainTimeoutMs: 10_000,
  maxHeaderBytes: 16_384,
  // Each may take a list of 2 MiB: 2 GiB in all, which Node has on a machine of 4 GiB.
  maxConnections: 1000,
}

/** What is known of a request: nothing if `node:http` itself refused it. */
export type RequestHead = Partial<Pick<IncomingMessage, 'headers' | 'method' | 'url'>>

/** Makes the header fields that every response to a request must have: name, value, name, value… */
export type CommonFields = (request: RequestHead) => readonly string[]

/** Is told of the requests of a server. */
export interface Observer {
  /** A request is carried out now. */
  readonly onRequest?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** A request was refused on a bare connection. */
  readonly onRefusal?: (error: HttpError, request: RequestHead) => void
}

/** A server that keeps its time-outs, refuses in JSON, and can be drained. */
export interface HttpServer {
  /** The server itself, which its host has listen. */
  readonly server: Server
  /**
   * Ends every connection after its next response, and settles once the server and all connections are closed. If some
   * do not close within `drainTimeoutMs`, it does not settle: then call `server.closeAllConnections()`.
   */
  drain(): Promise<void>
  /** How many connections are open. */
  readonly connectionCount: () => number
}

/** An open connection. */
export interface Connection {
  /** The response to the request that came last. */
  latest?: ServerResponse
  /** The response to the request that was carried out last. */
  current?: ServerResponse
  /** What it sent could not be read, and nothing more is. */
  isBroken?: true
}

/** Makes a server that hands its requests to `listener`, those of a connection one after another. */
export function createHttpServer(
  listener: RequestListener,
  limits: Limits & Shortcuts,
  commonFields: CommonFields = () => [],
  { onRequest, onRefusal }: Observer = {},
): HttpServer {
  const connections = new Map<Duplex, Connection>()
  const gate = createGate(listener)
  let isDraining = false

  const server = createServer({
    headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Otherwise Node itself answers a request without Host, and without a body.
    requireHostHeader: false,
    optimizeEmptyRequests: limits.optimizeEmptyRequests,
  })
  // Node drops the fields beyond this number silently, and a second Authorization with them; 0 drops none. Their number
  // is bounded by maxHeaderSize, and the service refuses 1,000 or more.
  server.maxHeadersCount = 0
  server.maxConnections = limits.maxConnections
  // A client may end its side once it has asked. Otherwise Node would drop the responses to it.
  Object.assign(server, { httpAllowHalfOpen: true })

  cutStalled(server, limits)
  server.on('connection', (socket) => {
    const connection: Connection = {}
    connections.set(socket, connection)
    readInSlices(socket, () => connection.latest?.req)
    socket.once('close', () => connections.delete(socket))
  })

  server.on('request', (request: IncomingMessage, response: ServerResponse) =>
    receive(request, response, gate.listener),
  )
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // The service starts to read a body once it has checked all that it can check before. It also reads after a
    // refusal, to throw away what a client sends that does not wait.
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue()
    })
    receive(request, response, gate.listener)
  })
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    receive(request, response, () => refuseRequest(request, response, new HttpError('expectationFailed')))
  })

  function receive(request: IncomingMessage, response: ServerResponse, listener: RequestListener): void {
    const connection = connections.get(request.socket)!
    connection.latest = response
    addFields(response, commonFields(request))
    inTurn(request, response, () => {
      connection.current = response
      onRequest?.(request, response)
      // If requests wait behind this one, the connection closes after the last of them.
      if (isDraining && connection.latest === response) response.setHeader('Connection', 'close')
      const problem = findHostProblem(request)
      if (problem === undefined) listener(request, response)
      else refuseRequest(request, response, new HttpError('malformedRequest', problem))
    })
  }

  function refuseOn(socket: Duplex, error: HttpError, request: RequestHead = {}): void {
    // The client may have gone meanwhile.
    if (!socket.writable) return
    // No request of a client stands behind this, so nobody else would catch what is thrown.
    attempt(
      () => {
        refuse(socket, error, commonFields(request))
        onRefusal?.(error, request)
      },
      () => socket.destroy(),
    )
  }

  server.on('clientError', (error: Error, socket) => {
    const connection = connections.get(socket)
    // What Node had read already may be a second error.
    if (connection === undefined || connection.isBroken) return
    const { latest } = connection
    if (isHeldBack(socket) && isTimeout(error)) {
      // The request is late because nothing was read while others waited. The client gets its time once more.
      const expire = (): unknown => connection.latest === latest && server.emit('clientError', error, socket)
      setTimeout(expire, limits.requestTimeoutMs).unref()
      return
    }
    connection.isBroken = true
    stopReading(socket)
    const refuseNow = (): void => refuseOn(socket, toHttpError(error))
    if (latest?.req.complete === false) refuseInstead(latest, socket, refuseNow)
    else refuseAfter(latest, refuseNow)
  })

  // CONNECT asks for a proxy. Without a listener, Node cuts the connection without a response.
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy())
    stopReading(socket)
    const connection = connections.get(socket)!
    // Node has removed its own listener, and a list that is being sent waits for this event.
    socket.on('drain', () => connection.current?.emit('drain'))
    const error = new HttpError('malformedRequest', 'This service is no proxy.')
    refuseAfter(connection.latest, () => refuseOn(socket, error, request))
  })

  return {
    server,
    connectionCount: () => connections.size,
    async drain() {
      isDraining = true
      for (const { latest } of connections.values()) {
        if (latest?.headersSent === false) latest.setHeader('Connection', 'close')
      }
      await closeServer(server, connections, gate, limits.drainTimeoutMs, refuseOn)
    },
  }
}

/** Says what is wrong with the Host of a request. A second Host is refused with the other fields. */
function findHostProblem({ headers: { host }, httpVersionMinor }: IncomingMessage): string | undefined {
  if (host === undefined) return httpVersionMinor === 0 ? undefined : 'The request has no Host field.'
  return isHost(host) ? undefined : 'The Host field is not a host.'
}

function refuseRequest(request: IncomingMessage, response: ServerResponse, error: HttpError): void {
  response.setHeader('Connection', 'close')
  void respond(request, response, errorResponse(error))
}
