import { once } from 'node:events'
import { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { isSilent, type Connections } from './connections.ts'

/** The server stops listening once no connection has been open for this long. */
const QUIET_MS = 50

/** After this part of its time a drain stops listening, whatever clients do. */
const STOP_LISTENING = 0.8

/** The part of its time that a client then has to send what it has begun. */
const LAST_REQUESTS = 0.1

/**
 * Closes the listening socket once no connection has been open for a moment, or when 80 % of the time is over. A moment
 * later it closes the connections that still wait for a request. Settles when all have ended.
 * @param refuse tells a client that its request is late
 */
export async function closeServer(
  server: Server,
  connections: Connections,
  timeoutMs: number,
  refuse: (socket: Socket) => void,
): Promise<void> {
  const closed = once(server, 'close')
  await quiet(server, connections, STOP_LISTENING * timeoutMs)
  // The close() of an HTTP server also stops looking for late requests, and some may still be arriving. In Bun it is no
  // server of `node:net`, and has that close() alone.
  const kind = [NetServer, Server].find((kind) => server instanceof kind)!
  kind.prototype.close.call(server)
  const timer = setTimeout(() => closeSilent(server, connections, refuse), LAST_REQUESTS * timeoutMs)
  await closed
  clearTimeout(timer)
}

/** Closes the connections that wait for a request: a client that sends nothing must not decide how the drain ends. */
function closeSilent(server: Server, connections: Connections, refuse: (socket: Socket) => void): void {
  server.closeIdleConnections()
  for (const connection of connections.values()) {
    if (!isSilent(connection)) continue
    const { socket } = connection
    refuse(socket)
    // A refused client otherwise has a second to see the response. Here the deadline is near.
    if (socket.writableFinished) socket.destroy()
    else socket.once('finish', () => socket.destroy())
  }
}

/** Settles once no connection has been open for a moment, or after `patienceMs`. */
function quiet(server: Server, connections: Connections, patienceMs: number): Promise<void> {
  return new Promise((resolve) => {
    let moment: NodeJS.Timeout | undefined
    const latest = setTimeout(() => setImmediate(settle), patienceMs)

    function look(): void {
      clearTimeout(moment)
      moment = undefined
      if (connections.size === 0) moment = setTimeout(() => setImmediate(settleIfQuiet, moment), QUIET_MS)
    }
    // When the listening socket closes, the system resets what it has not handed over yet. The event loop accepts
    // connections between its timers and its immediates.
    function settleIfQuiet(since: NodeJS.Timeout | undefined): void {
      if (since === moment) settle()
    }
    function onConnection(socket: Socket): void {
      look()
      socket.once('close', look)
    }
    function settle(): void {
      clearTimeout(moment)
      clearTimeout(latest)
      server.off('connection', onConnection)
      resolve()
    }
    server.on('connection', onConnection)
    for (const socket of connections.keys()) socket.once('close', look)
    look()
  })
}
