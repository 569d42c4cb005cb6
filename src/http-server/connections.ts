import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { resetConnection } from '../http/transport.ts'
import { clearInterval, nextTick, setImmediate, setInterval } from '../timers.ts'

export interface Connection {
  readonly socket: Socket
  index: number
  requestCount: number
  /** The response to the request that came last, while it is being sent or the request is still coming. */
  latestResponse: ServerResponse | undefined
  /** The response to the request that runs. */
  currentResponse: ServerResponse | undefined
  /** During a drain, the response that closes the connection, unless another request arrives before it's sent. */
  closingResponse: ServerResponse | undefined
  /** How many of its requests wait for their turn. */
  queuedCount: number
  /** It was refused, and nothing more is read from it. */
  isRejected: boolean
  /** It is no longer one of HTTP: a listener of the host for `upgrade` has it. */
  isUpgraded: boolean
}

const CONNECTION: unique symbol = Symbol('connection')
interface WithConnection {
  [CONNECTION]?: Connection | undefined
}

export const getConnection = (socket: Duplex & WithConnection): Connection | undefined => socket[CONNECTION]

/** Keeps the open connections of a server, in no order. Closed ones in a `Map` or `Set` would burden the collector. */
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
  // A lone listener of ours would make Node refuse upgrades. So ours comes and goes with those of the host.
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

/** Keeps a response while it is under way: those of idle connections would otherwise outlive many collections. */
export function trackResponse(connection: Connection, response: ServerResponse & WithConnection): void {
  connection.requestCount++
  connection.latestResponse = response
  response[CONNECTION] = connection
  response.on('close', untrackResponse)
}

function untrackResponse(this: ServerResponse & WithConnection): void {
  // Node sets `request.socket` to null when a listener leaves an async iterator of the body early.
  const connection = this[CONNECTION]!
  if (connection.currentResponse === this) connection.currentResponse = undefined
  if (connection.latestResponse === this && isRequestComplete(connection)) connection.latestResponse = undefined
}

function onUpgrade({ socket }: IncomingMessage): void {
  getConnection(socket)!.isUpgraded = true
  // It may have been read in slices.
  socket.removeAllListeners('readable')
  // Node still counts the removed listener until the next tick, and announces no buffered bytes to those of the host.
  nextTick(() => socket.readableLength > 0 && socket.emit('readable'))
}

/** Whether all has come of the request that came last. */
export const isRequestComplete = ({ latestResponse }: Connection): boolean => latestResponse?.req.complete !== false

/** Whether a body comes faster than it is read. */
export const isBodyBufferFull = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.readableLength >= request.readableHighWaterMark

/** Whether a connection waits for a request, or for the rest of one that needs no response any more. */
export function isIdle({ isUpgraded, latestResponse, socket }: Connection): boolean {
  if (isUpgraded || latestResponse?.writableFinished === false) return false
  // What is read in slices may have come, and wait to be read.
  return socket.readableLength === 0 || isBodyBufferFull(latestResponse?.req)
}

export function repeatWhileListening(ms: number, server: Server, callback: () => void): void {
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => (timer = setInterval(callback, ms).unref()))
  server.on('close', () => clearInterval(timer))
}

/** By Node's own timer of a socket, which sees how far a write has come. It is set while bytes wait for the client. */
export function closeStalled(server: Server, connections: readonly Connection[], stallTimeoutMs: number): void {
  repeatWhileListening(Math.ceil(stallTimeoutMs / 4), server, () => {
    for (const { isUpgraded, socket } of connections) {
      const hasPendingWrites = !isUpgraded && socket.writableLength > 0
      if (hasPendingWrites && socket.timeout !== stallTimeoutMs) socket.setTimeout(stallTimeoutMs)
    }
  })

  // This replaces what Node does after its own time-outs too.
  server.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) resetConnection(socket)
    // Otherwise it is the store that is slow.
    else if (isIdle(getConnection(socket)!)) {
      const { bytesRead } = socket
      // Node's timers run before it reads what came while the process was busy.
      setImmediate(() => {
        if (socket.bytesRead === bytesRead) socket.destroy()
      })
    }
  })
}
