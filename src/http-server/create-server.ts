/**
 * The HTTP server of the standalone server, for use with your own request listener.
 * @module plant-store/server
 */

import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { setImmediate } from 'node:timers'
import { send } from '../http/respond.ts'
import { closeAfter, drainServer } from './drain.ts'
import { hasValidHost, INVALID_HOST, rejectConnection, type Connection, type OnRejection } from './reject.ts'

/** Timeouts and limits of the HTTP server. Every option has a default. */
export interface ServerOptions {
  /** Time for the complete header section of a request to arrive, in milliseconds, at least 1. @default 10_000 */
  readonly headersTimeoutMs?: number | undefined
  /** Time for a complete request to arrive, body included, in milliseconds, at least 1. @default 30_000 */
  readonly requestTimeoutMs?: number | undefined
  /** Idle timeout of keep-alive connections, as announced to clients, in milliseconds, at least 1. @default 5_000 */
  readonly keepAliveTimeoutMs?: number | undefined
  /** Time after which a connection without any traffic is closed, in milliseconds, at least 1. @default 60_000 */
  readonly stallTimeoutMs?: number | undefined
  /** Time after which a drain destroys the remaining connections, in milliseconds, at least 1. @default 10_000 */
  readonly drainTimeoutMs?: number | undefined
  /** Maximum size of the header section of a request, in bytes, 1,024 to 1,048,576. @default 16_384 */
  readonly maxHeaderBytes?: number | undefined
  /** Maximum number of open connections, at least 1. Node drops any further connections. @default 1_000 */
  readonly maxConnections?: number | undefined
}

/** The value of each option. */
export type Limits = { readonly [K in keyof ServerOptions]-?: number }

type Range = Readonly<Record<'defaultValue' | 'min' | 'max', number>>

const MAX_TIMER_MS = 2 ** 31 - 1

/** Node treats a timeout of 0 as no timeout. */
const timeout = (defaultValue: number): Range => ({ defaultValue, min: 1, max: MAX_TIMER_MS })

export const LIMITS: Readonly<Record<keyof Limits, Range>> = {
  headersTimeoutMs: timeout(10_000),
  requestTimeoutMs: timeout(30_000),
  // Shorter than the drain timeout, so that idle connections close on their own during a drain.
  keepAliveTimeoutMs: timeout(5000),
  // If a client reads at 60 kB/s, the kernel accepts megabytes immediately, and then nothing for half a minute.
  stallTimeoutMs: timeout(60_000),
  drainTimeoutMs: timeout(10_000),
  maxHeaderBytes: { defaultValue: 16_384, min: 1024, max: 2 ** 20 },
  maxConnections: { defaultValue: 1000, min: 1, max: Number.MAX_SAFE_INTEGER },
}

/** An HTTP server with timeouts, JSON error responses and graceful shutdown. */
export interface PlantServer {
  /** The `node:http` server. It doesn't listen until you call `listen()`. */
  readonly server: Server
  /**
   * Shuts down gracefully: stops listening, and closes each connection after its last pending response or the keep-alive
   * timeout. Resolves once all connections are closed. Later calls return the same promise.
   * @returns the number of connections that were still open after `drainTimeoutMs` and were destroyed
   */
  readonly drain: () => Promise<number>
  /** Returns the number of open connections. */
  readonly connectionCount: () => number
  /** Calls `drain()` at the end of an `await using` scope. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * Creates the same HTTP server that the standalone server uses, but with your own request listener. The server enforces
 * timeouts, responds with a JSON `Error` body to requests that `node:http` itself rejects, sends all responses to a
 * client that half-closes its connection, and shuts down gracefully with `drain()`.
 * @throws TypeError if `listener` is not a function or if an option is unknown or out of range
 *
 * @example
 * import { createPlantStore } from 'plant-store'
 * import { createServer } from 'plant-store/server'
 *
 * const plants = createPlantStore({ tokens: { 'a-long-random-token': 'ada' } })
 * const { server, drain } = createServer(plants)
 *
 * server.listen(3000)
 * process.once('SIGTERM', drain)
 */
export function createServer(listener: RequestListener, options: ServerOptions = {}): PlantServer {
  if (typeof listener !== 'function') throw new TypeError(`listener must be a function, not of type ${typeof listener}`)
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(LIMITS, name))
  if (unknown !== undefined) throw new TypeError(`unknown option "${unknown}"`)
  const limits = Object.entries(LIMITS).map(([name, { defaultValue, min, max }]) => {
    const value = options[name as keyof Limits] ?? defaultValue
    if (Number.isSafeInteger(value) && value >= min && value <= max) return [name, value]
    throw new TypeError(`options.${name} must be a whole number from ${min} to ${max}, not ${value}`)
  })
  return createLimitedServer(listener, Object.fromEntries(limits) as Limits)
}

/**
 * @param limits limits, which aren't checked; and `optimizeEmptyRequests`, which makes requests without a body faster
 * (Node 24.12 and later) by skipping their stream events, for which the listener must not wait then
 * @param onRejection called for each error that the server itself responds with
 */
export function createLimitedServer(
  listener: RequestListener,
  limits: Limits & { readonly optimizeEmptyRequests?: boolean },
  onRejection?: OnRejection,
): PlantServer {
  const server = createHttpServer({
    headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    // Node adds a second, and the sum must not exceed the longest delay of a timer.
    keepAliveTimeout: Math.min(limits.keepAliveTimeoutMs, MAX_TIMER_MS - 1000),
    // With Node's default of 30 s, a late request would far outlive its timeout.
    connectionsCheckingInterval: 500,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node's own response to a request without Host has no body.
    requireHostHeader: false,
    // Overrides `--insecure-http-parser`, which accepts Content-Length together with Transfer-Encoding.
    insecureHTTPParser: false,
    optimizeEmptyRequests: limits.optimizeEmptyRequests ?? false,
  })
  // The service rejects 1,000 header fields or more. With a lower maximum, Node could drop a second Authorization.
  server.maxHeadersCount = 1001
  server.maxConnections = limits.maxConnections
  server.timeout = limits.stallTimeoutMs
  // A client may half-close its connection after its last request, and still gets the pending responses.
  Object.assign(server, { httpAllowHalfOpen: true })

  const connections = new Map<unknown, Connection>()
  server.on('connection', (socket) => {
    connections.set(socket, { socket, latestResponse: undefined, isRejected: false })
    socket.once('close', () => connections.delete(socket))
  })
  server.on('clientError', (error, socket) => {
    const connection = connections.get(socket)
    if (connection !== undefined) rejectConnection(connection, error, onRejection)
  })

  let draining: Promise<number> | undefined
  const drain = (): Promise<number> => (draining ??= drainServer(server, connections, limits))
  server.on('request', (request, response) => {
    const connection = connections.get(request.socket)!
    const previousResponse = connection.latestResponse
    connection.latestResponse = response
    if (draining === undefined) return handle(request, response)
    closeAfter(response, previousResponse)
    // Further requests may follow in the same packet. Only the response to the last of them closes the connection.
    setImmediate(() => request.socket.destroyed || handle(request, response))
  })
  const handle: RequestListener = (request, response) => {
    if (hasValidHost(request)) return listener(request, response)
    response.setHeader('Connection', 'close')
    void send(request, response, INVALID_HOST)
    onRejection?.(INVALID_HOST, request)
  }

  const dispose = (): Promise<void> => drain().then(() => undefined)
  return { server, drain, connectionCount: () => connections.size, [Symbol.asyncDispose]: dispose }
}
