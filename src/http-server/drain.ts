import { once } from 'node:events'
import { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { isSilent, type Connections } from './connections.ts'

/** The server stops listening once no connection has been open for this long. */
const QUIET_MS = 50

/** After this part of its time a drain stops listening, whatever clients do. */
const STOP_LISTENING = 0.8

/** The part of its time that a client then has to send what it has begun. */
const LAST_REQUESTS = 0.1

/** How many connections may wait to be accepted: what Node asks of the system. */
const BACKLOG = 511

/**
 * Closes the listening socket once no connection has been open for a moment, or when 80 % of the time is over. If
 * others listen beside this server, clients may come without a pause: then it closes the socket a moment after the
 * connections have closed that are open now. A moment later it closes those that still wait for a request. Settles when
 * all have ended.
 * @param isShared whether another process takes the connections that come later
 * @param refuse tells a client that its request is late
 */
export async function closeServer(
  server: Server,
  connections: Connections,
  timeoutMs: number,
  isShared: boolean,
  refuse: (socket: Socket) => void,
): Promise<void> {
  const closed = once(server, 'close')
  const patienceMs = STOP_LISTENING * timeoutMs
  await (isShared ? allClosed([...connections.keys()], patienceMs) : quiet(server, connections, patienceMs))
  await acceptWaiting(server)
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
    const latest = setTimeout(settle, patienceMs)

    function look(): void {
      clearTimeout(moment)
      moment = undefined
      if (connections.size === 0) moment = setTimeout(() => void settleIfQuiet(moment), QUIET_MS)
    }
    // A connection may have come while the process was busy.
    async function settleIfQuiet(since: NodeJS.Timeout | undefined): Promise<void> {
      await setImmediate()
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

/** Settles a moment after these connections have closed, in which their clients come again, or after `patienceMs`. */
async function allClosed(sockets: readonly Duplex[], patienceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, patienceMs)))
  const closed = sockets.map((socket) => new Promise<void>((resolve) => socket.once('close', resolve)))
  await Promise.race([Promise.all(closed).then(() => sleep(QUIET_MS, undefined, { ref: false })), patience])
  clearTimeout(timer)
}

/**
 * Accepts the connections that wait: when the listening socket closes, the system resets them. Node accepts one in a
 * round of its event loop, before the immediates. Clients that come without a pause must not keep the socket open.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = 0
  const count = (): unknown => accepted++
  server.on('connection', count)
  for (let round = 0; round < BACKLOG; round++) {
    await setImmediate()
    if (accepted <= round) break
  }
  server.off('connection', count)
}
