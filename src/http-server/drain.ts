import { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { clearTimeout, performance, setTimeout, yieldToEventLoop } from '../timers.ts'
import { isSilent, type Connection } from './connections.ts'

const QUIET_MS = 50
/** The parts of the drain time after which the server stops listening, and closes idle connections. */
const STOP_LISTENING = 0.8
const CLOSE_IDLE = 0.9
/** How many connections may wait to be accepted: what Node asks of the system. */
const BACKLOG = 511

/**
 * Closes the listening socket once no connection has been open for a moment, or at 80 % of the time; if others listen
 * beside this server (`isShared`), a moment after today's connections have closed. At 90 % of the time it rejects those
 * that still wait for a request, and cuts what is left when the time is over. Returns how many that were.
 */
export async function closeServer(
  server: Server,
  connections: readonly Connection[],
  timeoutMs: number,
  isShared: boolean,
  refuse: (socket: Socket) => void,
): Promise<number> {
  let [cut, isOver] = [0, false]
  const closeIdleAt = performance.now() + CLOSE_IDLE * timeoutMs
  function cutAll(): void {
    isOver = true
    cut += connections.length
    // The server's own closeAllConnections() does not know those that were upgraded, nor those of CONNECT.
    for (const { socket } of connections) socket.destroy()
  }
  const deadline = setTimeout(cutAll, timeoutMs)
  await quiet(server, connections, STOP_LISTENING * timeoutMs, isShared)
  await acceptWaiting(server)
  // Not the close() of an HTTP server, which stops looking for late requests. Bun has only that one.
  const kind = [NetServer, Server].find((kind) => server instanceof kind)!
  const closed = new Promise((resolve) => kind.prototype.close.call(server, resolve))
  // If the process was busy until then, some have come since.
  if (isOver) cutAll()
  const timer = setTimeout(() => {
    // What has come while the process was busy is read first.
    void yieldToEventLoop().then(() => closeSilent(server, connections, refuse))
  }, closeIdleAt - performance.now())
  await closed
  clearTimeout(timer)
  clearTimeout(deadline)
  // Now that looking is to stop: its timer keeps the server in memory. But the server must not emit `close` once more.
  if (kind === NetServer) Server.prototype.close.call(Object.create(server, { emit: { value: () => false } }))
  return cut
}

/** Closes the connections that wait for a request: a client that sends nothing must not decide how the drain ends. */
function closeSilent(server: Server, connections: readonly Connection[], refuse: (socket: Socket) => void): void {
  // Node takes for idle, too, what waits for its client to read, or to be read itself.
  const busy = connections.filter((connection) => !isSilent(connection))
  for (const { socket } of busy) socket.destroy = () => socket
  server.closeIdleConnections()
  for (const { socket } of busy) Reflect.deleteProperty(socket, 'destroy')
  for (const connection of connections) {
    if (!isSilent(connection)) continue
    const { socket } = connection
    refuse(socket)
    // A refused client otherwise has a second to see the response. Here the deadline is near.
    socket.destroySoon()
  }
}

/** Settles when nobody has been connected for 50 ms; if the port is shared, only present connections count. */
function quiet(server: Server, connections: readonly Connection[], patienceMs: number, isShared: boolean) {
  return new Promise<void>((resolve) => {
    const open = new Set<Duplex>()
    let moment: NodeJS.Timeout | undefined
    const latest = setTimeout(settle, patienceMs)

    function watch(socket: Duplex): void {
      open.add(socket)
      socket.once('close', () => {
        open.delete(socket)
        look()
      })
    }
    function look(): void {
      clearTimeout(moment)
      moment = open.size > 0 ? undefined : setTimeout(() => void settleIfQuiet(moment), QUIET_MS).unref()
    }
    // A connection may have come while the process was busy.
    async function settleIfQuiet(since: NodeJS.Timeout | undefined): Promise<void> {
      await yieldToEventLoop()
      if (since === moment && open.size === 0) settle()
    }
    function settle(): void {
      clearTimeout(moment)
      clearTimeout(latest)
      server.off('connection', watch)
      resolve()
    }
    if (!isShared) server.on('connection', watch)
    for (const { socket } of connections) watch(socket)
    look()
  })
}

/** Accepts the connections that wait, which the system would reset. Node accepts one in a round. */
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = 0
  const count = (): unknown => accepted++
  server.on('connection', count)
  for (let round = 0; round < BACKLOG; round++) {
    await yieldToEventLoop()
    if (accepted <= round) break
  }
  server.off('connection', count)
}
