import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { resetConnection } from '../legacy/http/transport.ts'
import { clearInterval, nextTick, setImmediate, setInterval } from '../legacy/timers.ts'

export interface Connection {
  readonly socket: Socket
  index: number
  requestCount: number
  /** The response to the latest request. Cleared once the response has been sent and the request is complete. */
  latestResponse: ServerResponse | undefined
  /** The response to the request that is being handled. */
  currentResponse: ServerResponse | undefined
  /**
   * During a drain: the response that closes the connection, unless another request arrives before that response is
   * sent.
   */
  closingResponse: ServerResponse | undefined
  /** The number of requests on this connection that are waiting for their turn. */
  queuedCount: number
  /** Whether the connection is closing after an error response. Nothing more is read from a rejected connection. */
  isRejected: boolean
  /** Whether an `upgrade` listener of the host has taken over the connection. */
  isUpgraded: boolean
}

const CONNECTION: unique symbol = Symbol('connection')
interface WithConnection {
  [CONNECTION]?: Connection | undefined
}

export const getConnection = (socket: Duplex & WithConnection): Connection | undefined => socket[CONNECTION]

/**
 * Returns a live, unordered list of open connections. It's an array, because a `Map` or `Set` would burden the garbage
 * collector with closed connections.
 */
export function trackConnections(server: Server): readonly Connection[] {
  const connections: Connection[] = []
  server.on('connection', (socket: Socket & WithConnection) => {
    const connection: Connection = {
      socket,
      index: connections.length,
      requestCount: 0,
      latestResponse: undefined,
      currentResponse: undefined,
      closingResponse: undefined,
      queuedCount: 0,
      isRejected: false,
      isUpgraded: false,
    }
    connections.push(connection)
    socket[CONNECTION] = connection
    socket.once('close', () => {
      socket[CONNECTION] = undefined
      const last = connections.pop()!
      if (last === connection) return
      connections[connection.index] = last
      last.index = connection.index
    })
  })
  // Once there is an `upgrade` listener, Node no longer emits `request` for upgrade requests. So onUpgrade() is only
  // registered while the host has such a listener too.
  for (const [listenerEvent, method] of [
    ['newListener', 'on'],
    ['removeListener', 'off'],
  ] as const) {
    server.on(listenerEvent, (event: unknown, listener) => {
      if (event === 'upgrade' && listener !== onUpgrade) server[method](event, onUpgrade)
    })
  }
  return connections
}

/**
 * Stores a response on its connection until the response is sent. Idle connections shouldn't keep responses in memory.
 */
export function trackResponse(connection: Connection, response: ServerResponse & WithConnection): void {
  connection.requestCount++
  connection.latestResponse = response
  response[CONNECTION] = connection
  response.on('close', untrackResponse)
}

function untrackResponse(this: ServerResponse & WithConnection): void {
  // Don't use `request.socket`: Node sets it to null when a listener stops iterating over the body early.
  const connection = this[CONNECTION]!
  if (connection.currentResponse === this) connection.currentResponse = undefined
  if (connection.latestResponse === this && isRequestComplete(connection)) connection.latestResponse = undefined
}

function onUpgrade({ socket }: IncomingMessage): void {
  getConnection(socket)!.isUpgraded = true
  // Remove the listener that throttleReads() added.
  socket.removeAllListeners('readable')
  // Until the next tick, Node still counts the removed listener. A listener that is added until then wouldn't be called
  // for bytes that are already buffered.
  nextTick(() => socket.readableLength > 0 && socket.emit('readable'))
}

/** Whether the latest request has arrived completely. */
export const isRequestComplete = ({ latestResponse }: Connection): boolean => latestResponse?.req.complete !== false

/** Whether the buffer of an incomplete body is full, because the listener reads it too slowly or not at all. */
export const isBodyBufferFull = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.readableLength >= request.readableHighWaterMark

/**
 * Whether no response is pending on a connection. The body of a request that was already answered may still be
 * arriving.
 */
export function isIdle({ isUpgraded, latestResponse, socket }: Connection): boolean {
  if (isUpgraded || latestResponse?.writableFinished === false) return false
  // If reads are throttled, the buffer might already contain the next request.
  return socket.readableLength === 0 || isBodyBufferFull(latestResponse?.req)
}

export function repeatWhileListening(ms: number, server: Server, callback: () => void): void {
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => (timer = setInterval(callback, ms).unref()))
  server.on('close', () => clearInterval(timer))
}

/**
 * Resets connections whose client accepts no data for `stallTimeoutMs`. Sets the socket timeout while data is pending,
 * because Node doesn't time out a socket if the kernel has accepted only part of a pending write.
 */
export function closeStalled(server: Server, connections: readonly Connection[], stallTimeoutMs: number): void {
  repeatWhileListening(Math.ceil(stallTimeoutMs / 4), server, () => {
    for (const { isUpgraded, socket } of connections) {
      const hasPendingWrites = !isUpgraded && socket.writableLength > 0
      if (hasPendingWrites && socket.timeout !== stallTimeoutMs) socket.setTimeout(stallTimeoutMs)
    }
  })

  // Once this listener exists, Node no longer destroys sockets after the keep-alive timeout, so the listener has to.
  server.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) resetConnection(socket)
    // A connection that isn't idle is waiting for the request listener, which might be slow.
    else if (isIdle(getConnection(socket)!)) {
      const { bytesRead } = socket
      // Node runs timers before it reads the data that arrived while the process was busy.
      setImmediate(() => {
        if (socket.bytesRead === bytesRead) socket.destroy()
      })
    }
  })
}
