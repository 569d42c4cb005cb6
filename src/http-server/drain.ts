import { Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { hasAmbiguousFraming } from '../legacy/http/respond.ts'
import { clearTimeout, performance, setTimeout, yieldToEventLoop } from '../legacy/timers.ts'
import { isIdle, type Connection } from './connections.ts'

const QUIET_PERIOD_MS = 50
/** Fractions of the drain timeout. */
const STOP_LISTENING_FRACTION = 0.8
const CLOSE_IDLE_FRACTION = 0.9
/** Maximum number of connections waiting to be accepted: the backlog that Node requests from the kernel. */
const LISTEN_BACKLOG = 511

/** The graceful shutdown of a server. */
interface Drain {
  readonly isActive: () => boolean
  /**
   * Starts the shutdown. Later calls return the same promise.
   * @param isPortShared whether another process accepts new connections on the same port
   * @returns the number of connections that were destroyed when the drain timed out
   */
  readonly start: (isPortShared: boolean) => Promise<number>
}

/** @param rejectIdle responds with an error to a client whose request is still incomplete near the end of the drain */
export function createDrain(
  server: Server,
  connections: readonly Connection[],
  timeoutMs: number,
  rejectIdle: (socket: Socket) => void,
): Drain {
  let draining: Promise<number> | undefined
  function start(isPortShared: boolean): Promise<number> {
    for (const connection of connections) {
      if (connection.latestResponse?.headersSent === false) closeAfterResponse(connection, connection.latestResponse)
    }
    return closeServer(server, connections, timeoutMs, isPortShared, rejectIdle)
  }
  return {
    isActive: () => draining !== undefined,
    start: (isPortShared) => (draining ??= start(isPortShared)),
  }
}

/** Closes a connection after a response, unless another request arrives before the response is sent. */
export function closeAfterResponse(connection: Connection, response: ServerResponse): void {
  response.setHeader('Connection', 'close')
  connection.closingResponse = response
}

/**
 * Undoes closeAfterResponse() when another request arrives, except after a request with ambiguous framing: a proxy may
 * disagree on where that request ends (request smuggling).
 */
export function restoreKeepAlive({ closingResponse }: Connection): void {
  if (closingResponse?.headersSent === false && !hasAmbiguousFraming(closingResponse.req))
    closingResponse.setHeader('Connection', 'keep-alive')
}

/**
 * Closes a server and its connections, and returns how many connections were destroyed when the timeout expired.
 *
 * 1. Keeps listening until no connection has been open for 50 ms, or until 80% of the timeout has passed. On a shared
 *   port, only connections that are open at the start count, because other processes accept new connections.
 * 2. Closes idle connections at 90% of the timeout.
 * 3. Destroys the remaining connections when the timeout expires.
 */
async function closeServer(
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
    // The server's own closeAllConnections() skips connections after an upgrade or CONNECT.
    for (const { socket } of connections) socket.destroy()
  }
  const deadlineTimer = setTimeout(destroyAll, timeoutMs)
  await waitUntilQuiet(server, connections, STOP_LISTENING_FRACTION * timeoutMs, isPortShared)
  await acceptBacklog(server)
  // http.Server's own close() would also stop the checks for late requests. Bun's http.Server isn't a net.Server.
  const ServerClass = [NetServer, Server].find((kind) => server instanceof kind)!
  const closed = new Promise((resolve) => ServerClass.prototype.close.call(server, resolve))
  // If the process was busy until the timeout, acceptBacklog() might have accepted connections after destroyAll().
  if (isTimedOut) destroyAll()
  const closeIdleTimer = setTimeout(() => {
    // First let Node read the requests that arrived while the process was busy, so that their connections don't count
    // as idle.
    void yieldToEventLoop().then(() => closeIdle(server, connections, rejectIdle))
  }, closeIdleAt - performance.now())
  await closed
  clearTimeout(closeIdleTimer)
  clearTimeout(deadlineTimer)
  if (ServerClass === NetServer) stopChecking(server)
  return destroyedCount
}

/** Clears the timer with which Node checks for late requests. The timer would keep a closed server in memory. */
function stopChecking(server: Server): void {
  // Only http.Server's close() clears the timer. Called on the server itself, close() would also emit `close` again.
  Server.prototype.close.call(Object.create(server, { emit: { value: () => false } }))
}

/** Closes the connections without a pending response, so that a client that sends nothing can't make the drain fail. */
function closeIdle(server: Server, connections: readonly Connection[], rejectIdle: (socket: Socket) => void): void {
  // closeIdleConnections() would also destroy connections that have unread input or whose client is still reading a
  // response. A no-op `destroy` protects them.
  const busy = connections.filter((connection) => !isIdle(connection))
  for (const { socket } of busy) socket.destroy = () => socket
  server.closeIdleConnections()
  for (const { socket } of busy) Reflect.deleteProperty(socket, 'destroy')
  for (const connection of connections) {
    if (!isIdle(connection)) continue
    const { socket } = connection
    rejectIdle(socket)
    // A rejected client usually gets a second to close its side, but here the deadline is near.
    socket.destroySoon()
  }
}

/** Resolves once no connection has been open for 50 ms; on a shared port, new connections don't count. */
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
    // A connection might have arrived while the process was busy. Let Node accept it first.
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

/** Lets Node accept the connections in the backlog, one per tick. Otherwise the kernel would reset them. */
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
