import { once } from 'node:events'
import { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { HttpError } from '../http/errors.ts'
import type { Gate } from './gate.ts'
import type { Connection } from './http-server.ts'

type Connections = ReadonlyMap<Duplex, Connection>

/** The server stops listening once no connection has been open, and none has come or gone, for this long. */
const QUIET_MS = 50

/** A turn of the event loop that takes less has hardly done anything. */
const SHORT_TURN_MS = 0.1

/**
 * Which part of its time a drain may spend on each step, 80 % together; and after which it closes silent connections.
 */
const WAIT_FOR_QUIET = 0.74
const WAIT_FOR_PAUSE = 0.05
const WAIT_FOR_EMPTY_TURN = 0.01
const CLOSE_SILENT = 0.9

/**
 * Closes the listening socket once no more clients come, and settles when every connection has closed. If clients never
 * stop coming, it closes the socket early enough to answer within `timeoutMs` what they have sent.
 */
export async function closeServer(
  server: Server,
  connections: Connections,
  gate: Gate,
  timeoutMs: number,
  refuse: (socket: Duplex, error: HttpError) => void,
): Promise<void> {
  const startedAt = performance.now()
  const closed = once(server, 'close')
  await quiet(server, connections, WAIT_FOR_QUIET * timeoutMs)
  // Most clients connect again once they have a response. A client that waits for one does not come while the socket
  // closes.
  gate.shut()
  if (connections.size > 0) await quiet(server, connections, WAIT_FOR_PAUSE * timeoutMs, true)
  // The first close in a process takes much longer, as its code is compiled then, and clients would come meanwhile.
  new NetServer().close()
  await emptyTurn(server, WAIT_FOR_EMPTY_TURN * timeoutMs)
  // The close() of an HTTP server also stops looking for late requests, and some may still be arriving. In Bun it is no
  // server of `node:net`, and has that close() alone.
  const kind = [NetServer, Server].find((kind) => server instanceof kind)!
  kind.prototype.close.call(server)
  gate.open()
  const leftMs = startedAt + CLOSE_SILENT * timeoutMs - performance.now()
  // Node warns of a time that is negative.
  const timer = setTimeout(() => closeSilent(server, connections, refuse), Math.max(0, leftMs))
  await closed
  clearTimeout(timer)
}

/**
 * Settles once no connection has come or gone for a while. None may be open either, unless `mayBeOpen`. Settles after
 * `patienceMs` at the latest.
 */
function quiet(server: Server, connections: Connections, patienceMs: number, mayBeOpen = false): Promise<void> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined
    const latest = setTimeout(settle, patienceMs)

    function look(): void {
      clearTimeout(timer)
      if (mayBeOpen || connections.size === 0) timer = setTimeout(settle, QUIET_MS)
    }
    function onConnection(socket: Duplex): void {
      look()
      socket.once('close', look)
    }
    function settle(): void {
      clearTimeout(timer)
      clearTimeout(latest)
      server.off('connection', onConnection)
      resolve()
    }
    server.on('connection', onConnection)
    for (const socket of connections.keys()) socket.once('close', look)
    look()
  })
}

/**
 * Settles after a turn of the event loop that accepted no connection, and that was so short that hardly any can have
 * come since: when the listening socket closes, the system resets the connections that wait to be accepted. A turn
 * accepts one connection at most. Under a flood there is no such turn, so this settles after `patienceMs` at the
 * latest.
 */
async function emptyTurn(server: Server, patienceMs: number): Promise<void> {
  let accepted = 0
  function onConnection(): void {
    accepted++
  }
  server.on('connection', onConnection)
  const deadline = performance.now() + patienceMs
  for (let isEmpty = false; !isEmpty && performance.now() < deadline;) {
    const acceptedBefore = accepted
    const startedAt = performance.now()
    await setImmediate()
    isEmpty = accepted === acceptedBefore && performance.now() - startedAt < SHORT_TURN_MS
  }
  server.off('connection', onConnection)
}

/**
 * Closes the connections that wait for a request, or for the rest of a header. No request is lost with them, and a
 * client that sends nothing must not decide how the drain ends.
 */
function closeSilent(
  server: Server,
  connections: Connections,
  refuse: (socket: Duplex, error: HttpError) => void,
): void {
  server.closeIdleConnections()
  for (const [socket, { latest }] of connections) {
    if (latest?.writableFinished === false) continue
    refuse(socket, new HttpError('requestTimeout'))
    // A refused client otherwise has some time to stop sending. Here the deadline is near.
    if (socket.writableFinished) socket.destroy()
    else socket.once('finish', () => socket.destroy())
  }
}
