import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { reset } from '../http/transport.ts'
import { clearInterval, nextTick, setImmediate, setInterval } from '../timers.ts'

export interface Connection {
  readonly socket: Socket
  index: number
  requests: number
  /** The response to the request that came last, while it is being sent or the request is still coming. */
  latest: ServerResponse | undefined
  /** The response to the request that runs. */
  current: ServerResponse | undefined
  /** During a drain, the response that closes the connection, unless another request arrives before it's sent. */
  last: ServerResponse | undefined
  /** How many of its requests wait for their turn. */
  waiting: number
  /** It was refused, and nothing more is read from it. */
  isBroken: boolean
  /** It is no longer one of HTTP: a listener of the host for `upgrade` has it. */
  isUpgraded: boolean
}

const CONNECTION: unique symbol = Symbol('connection')
interface Connected {
  [CONNECTION]?: Connection | undefined
}

export const connectionOf = (socket: Duplex & Connected): Connection | undefined => socket[CONNECTION]

/** Keeps the open connections of a server, in no order. Closed ones in a `Map` or `Set` would burden the collector. */
export function keepConnections(server: Server): readonly Connection[] {
  const connections: Connection[] = []
  server.on('connection', (socket: Socket & Connected) => {
    const connection: Connection = {
      socket,
      index: connections.length,
      requests: 0,
      latest: undefined,
      current: undefined,
      last: undefined,
      waiting: 0,
      isBroken: false,
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
  for (const [change, follow] of [
    ['newListener', 'on'],
    ['removeListener', 'off'],
  ] as const) {
    server.on(change, (event: unknown, listener) => {
      if (event === 'upgrade' && listener !== handOver) server[follow](event, handOver)
    })
  }
  return connections
}

/** Keeps a response while it is under way: those of idle connections would otherwise outlive many collections. */
export function hold(connection: Connection, response: ServerResponse & Connected): void {
  connection.requests++
  connection.latest = response
  response[CONNECTION] = connection
  response.on('close', letGo)
}

function letGo(this: ServerResponse & Connected): void {
  // Node sets `request.socket` to null when a listener leaves an async iterator of the body early.
  const connection = this[CONNECTION]!
  if (connection.current === this) connection.current = undefined
  if (connection.latest === this && isWhole(connection)) connection.latest = undefined
}

function handOver({ socket }: IncomingMessage): void {
  connectionOf(socket)!.isUpgraded = true
  // It may have been read in slices.
  socket.removeAllListeners('readable')
  // Node still counts the removed listener until the next tick, and announces no buffered bytes to those of the host.
  nextTick(() => socket.readableLength > 0 && socket.emit('readable'))
}

/** Whether all has come of the request that came last. */
export const isWhole = ({ latest }: Connection): boolean => latest?.req.complete !== false

/** Whether a body comes faster than it is read. */
export const isBodyWaiting = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.readableLength >= request.readableHighWaterMark

/** Whether a connection waits for a request, or for the rest of one that needs no response any more. */
export function isSilent({ isUpgraded, latest, socket }: Connection): boolean {
  if (isUpgraded || latest?.writableFinished === false) return false
  // What is read in slices may have come, and wait to be read.
  return socket.readableLength === 0 || isBodyWaiting(latest?.req)
}

export function lookEvery(ms: number, server: Server, look: () => void): void {
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => (timer = setInterval(look, ms).unref()))
  server.on('close', () => clearInterval(timer))
}

/** By Node's own timer of a socket, which sees how far a write has come. It is set while bytes wait for the client. */
export function cutStalled(server: Server, connections: readonly Connection[], stallTimeoutMs: number): void {
  lookEvery(Math.ceil(stallTimeoutMs / 4), server, () => {
    for (const { isUpgraded, socket } of connections) {
      const isWaiting = !isUpgraded && socket.writableLength > 0
      if (isWaiting && socket.timeout !== stallTimeoutMs) socket.setTimeout(stallTimeoutMs)
    }
  })

  // This replaces what Node does after its own time-outs too.
  server.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) reset(socket)
    // Otherwise it is the store that is slow.
    else if (isSilent(connectionOf(socket)!)) {
      const { bytesRead } = socket
      // Node's timers run before it reads what came while the process was busy.
      setImmediate(() => {
        if (socket.bytesRead === bytesRead) socket.destroy()
      })
    }
  })
}
