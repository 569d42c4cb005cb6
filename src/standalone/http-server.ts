import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HttpError } from '../http/errors.ts'
import { errorAnswer, respond } from '../http/respond.ts'
import type { Settings } from './config.ts'
import { closeGently, refuse, toHttpError } from './refusal.ts'

type Limits = Pick<
  Settings,
  | 'headersTimeout'
  | 'requestTimeout'
  | 'keepAliveTimeout'
  | 'stallTimeout'
  | 'checkInterval'
  | 'maxHeaderBytes'
  | 'maxConnections'
>

/** A server that keeps its time-outs, refuses in JSON, and can be drained. */
export interface HttpServer {
  readonly server: Server
  /** Lets every connection end after its next answer, and closes the server when none is left. */
  drain(): Promise<void>
  isDraining(): boolean
  /** How many connections are open. */
  connectionCount(): number
}

/** Makes a server that hands its requests to `listener`. */
export function createHttpServer(listener: RequestListener, limits: Limits): HttpServer {
  /** The open connections, each with the response to its latest request. */
  const connections = new Map<Duplex, ServerResponse | undefined>()
  /** Connections whose input cannot be read on. */
  const broken = new WeakSet<Duplex>()
  let isDraining = false

  const server = createServer({
    headersTimeout: Math.min(limits.headersTimeout, limits.requestTimeout),
    requestTimeout: limits.requestTimeout,
    keepAliveTimeout: limits.keepAliveTimeout,
    connectionsCheckingInterval: limits.checkInterval,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node answers a request without Host itself, with no body.
    requireHostHeader: false,
  })
  // Node drops fields beyond this number without a word, a second Authorization among them; 0 drops none.
  // There are as many as fit maxHeaderSize, and the service refuses 1,000 or more.
  server.maxHeadersCount = 0
  // Node restarts this time-out once for what the kernel took of the last write, so a client that takes
  // nothing is noticed after one or two of them.
  server.timeout = Math.ceil(limits.stallTimeout / 2)
  if (limits.maxConnections !== undefined) server.maxConnections = limits.maxConnections

  server.on('connection', (socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => {
      connections.delete(socket)
      if (isDraining && connections.size === 0) server.close()
    })
  })

  server.on('request', handle)
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // The service begins to read a body once it has checked all that can be checked before. After a refusal
    // it reads too, to throw away what a client sends that did not wait.
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue()
    })
    handle(request, response)
  })
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    connections.set(request.socket, response)
    refuseRequest(request, response, 'The only expectation that is met here is 100-continue.')
  })

  function handle(request: IncomingMessage, response: ServerResponse): void {
    connections.set(request.socket, response)
    if (isDraining) response.setHeader('Connection', 'close')
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      refuseRequest(request, response, 'The request has no Host field.')
    } else {
      listener(request, response)
    }
  }

  server.on('clientError', (error: Error, socket) => {
    // Every further piece of the same input is an error again.
    if (broken.has(socket)) return
    broken.add(socket)
    const response = connections.get(socket)
    const refusal = toHttpError(error)
    if (response === undefined) refuse(socket, refusal)
    else if (response.req.complete) refuseAfter(response, socket, refusal)
    else refuseInstead(response, socket, refusal)
  })

  // A proxy's method. Without a listener Node cuts the connection without an answer.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy())
    refuse(socket, new HttpError('malformedRequest', 'This service is no proxy.'))
  })

  server.on('timeout', (socket: Socket) => {
    const response = connections.get(socket)
    const isIdle = response?.writableFinished ?? false
    const isStalled = socket.writableLength > 0
    // Otherwise it is the service that has kept the client waiting, or a request that is arriving.
    if (isIdle || isStalled) socket.destroy()
  })

  return {
    server,
    isDraining: () => isDraining,
    connectionCount: () => connections.size,
    async drain() {
      isDraining = true
      for (const response of connections.values()) {
        if (response?.headersSent === false) response.setHeader('Connection', 'close')
      }
      const closed = once(server, 'close')
      if (connections.size === 0) server.close()
      await closed
    },
  }
}

function refuseRequest(request: IncomingMessage, response: ServerResponse, problem: string): void {
  response.setHeader('Connection', 'close')
  void respond(request, response, errorAnswer(new HttpError('malformedRequest', problem)))
}

/** Refuses what follows a request, once that is answered, and unless its answer closes the connection. */
function refuseAfter(response: ServerResponse, socket: Duplex, error: HttpError): void {
  function refuseNext(): void {
    if (response.shouldKeepAlive) refuse(socket, error)
  }
  if (response.writableFinished) refuseNext()
  else response.once('close', refuseNext)
}

/** Refuses a request whose body cannot be read on, in its turn, and unless its answer has begun. */
function refuseInstead(response: ServerResponse, socket: Duplex, error: HttpError): void {
  function refuseNow(): void {
    if (response.headersSent) closeGently(socket)
    else refuse(socket, error)
  }
  // Node gives a response its socket when its turn comes.
  if (response.socket === null) response.once('socket', refuseNow)
  else refuseNow()
}
