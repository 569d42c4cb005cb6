import { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { clearTimeout, performance, setTimeout, yieldToEventLoop } from '../timers.ts'
import { isIdle, type Connection } from './connections.ts'

const QUIET_PERIOD_MS = 50
/** The parts of the drain time after which the server stops listening, and closes idle connections. */
const STOP_LISTENING_FRACTION = 0.8
const CLOSE_IDLE_FRACTION = 0.9
/** How many connections may wait to be accepted: what Node asks of the system. */
const LISTEN_BACKLOG = 511

/**
 * Closes the listening socket once no connection has been open for a moment, or at 80 % of the time; if others listen
 * beside this server (`isShared`), a moment after today's connections have closed. At 90 % of the time it rejects those
 * that still wait for a request, and cuts what is left when the time is over. Returns how many that were.
 */
export async function drainServer(
  server: Server,
  connections: readonly Connection[],
  timeoutMs: number,
  isPortShared: boolean,
  rejectIdle: (socket: Socket) => void,
): Promise<number> {
  let [destroyedCount, isTimedOut] = [0, false]
  const closeIdleAt = performance.now() + CLOSE_IDLE_FRACTION * timeoutMs
  function destroyAll(): void {
    isTimedOut = true
    destroyedCount += connections.length
    // The server's own closeAllConnections() does not know those that were upgraded, nor those of CONNECT.
    for (const { socket } of connections) socket.destroy()
  }
  const deadlineTimer = setTimeout(destroyAll, timeoutMs)
  await waitUntilQuiet(server, connections, STOP_LISTENING_FRACTION * timeoutMs, isPortShared)
  await acceptBacklog(server)
  // Not the close() of an HTTP server, which stops looking for late requests. Bun has only that one.
  const ServerClass = [NetServer, Server].find((kind) => server instanceof kind)!
  const closed = new Promise((resolve) => ServerClass.prototype.close.call(server, resolve))
  // If the process was busy until then, some have come since.
  if (isTimedOut) destroyAll()
  const closeIdleTimer = setTimeout(() => {
    // What has come while the process was busy is read first.
    void yieldToEventLoop().then(() => closeIdle(server, connections, rejectIdle))
  }, closeIdleAt - performance.now())
  await closed
  clearTimeout(closeIdleTimer)
  clearTimeout(deadlineTimer)
  // Now that looking is to stop: its timer keeps the server in memory. But the server must not emit `close` once more.
  if (ServerClass === NetServer) Server.prototype.close.call(Object.create(server, { emit: { value: () => false } }))
  return destroyedCount
}

/** Closes the connections that wait for a request: a client that sends nothing must not decide how the drain ends. */
function closeIdle(server: Server, connections: readonly Connection[], rejectIdle: (socket: Socket) => void): void {
  // Node takes for idle, too, what waits for its client to read, or to be read itself.
  const busy = connections.filter((connection) => !isIdle(connection))
  for (const { socket } of busy) socket.destroy = () => socket
  server.closeIdleConnections()
  for (const { socket } of busy) Reflect.deleteProperty(socket, 'destroy')
  for (const connection of connections) {
    if (!isIdle(connection)) continue
    const { socket } = connection
    rejectIdle(socket)
    // A refused client otherwise has a second to see the response. Here the deadline is near.
    socket.destroySoon()
  }
}

/** Settles when nobody has been connected for 50 ms; if the port is shared, only present connections count. */
function waitUntilQuiet(server: Server, connections: readonly Connection[], maxWaitMs: number, isPortShared: boolean) {
  return new Promise<void>((resolve) => {
    const openSockets = new Set<Duplex>()
    let quietTimer: NodeJS.Timeout | undefined
    const maxWaitTimer = setTimeout(settle, maxWaitMs)

    function trackSocket(socket: Duplex): void {
      openSockets.add(socket)
      socket.once('close', () => {
        openSockets.delete(socket)
        restartQuietTimer()
      })
    }
    function restartQuietTimer(): void {
      clearTimeout(quietTimer)
      quietTimer =
        openSockets.size > 0 ? undefined : setTimeout(() => void settleIfQuiet(quietTimer), QUIET_PERIOD_MS).unref()
    }
    // A connection may have come while the process was busy.
    async function settleIfQuiet(firedTimer: NodeJS.Timeout | undefined): Promise<void> {
      await yieldToEventLoop()
      if (firedTimer === quietTimer && openSockets.size === 0) settle()
    }
    function settle(): void {
      clearTimeout(quietTimer)
      clearTimeout(maxWaitTimer)
      server.off('connection', trackSocket)
      resolve()
    }
    if (!isPortShared) server.on('connection', trackSocket)
    for (const { socket } of connections) trackSocket(socket)
    restartQuietTimer()
  })
}

/** Accepts the connections that wait, which the system would reset. Node accepts one in a round. */
async function acceptBacklog(server: Server): Promise<void> {
  let acceptedCount = 0
  const countAccepted = (): unknown => acceptedCount++
  server.on('connection', countAccepted)
  for (let tick = 0; tick < LISTEN_BACKLOG; tick++) {
    await yieldToEventLoop()
    if (acceptedCount <= tick) break
  }
  server.off('connection', countAccepted)
}
