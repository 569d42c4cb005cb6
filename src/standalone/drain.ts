import { once } from 'node:events'
import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { HttpError } from '../http/errors.ts'
import type { Gate } from './gate.ts'
import type { Connection } from './http-server.ts'
import { refuse } from './refusal.ts'

type Connections = ReadonlyMap<Duplex, Connection>

/** How long no connection may have been open, or have come or gone, before the server stops listening. */
const QUIET_MS = 50

/** A turn of the event loop that takes less has hardly done anything. */
const SHORT_TURN_MS = 0.1

/** The parts of the time that a drain has for each step at most, together 80 %, and after which silent clients go. */
const WAIT_FOR_QUIET = 0.74
const WAIT_FOR_PAUSE = 0.05
const WAIT_FOR_EMPTY_TURN = 0.01
const CLOSE_SILENT = 0.9

/**
 * Closes the listening socket once clients have stopped to come, and settles when every connection has closed. If
 * clients never stop, it closes in time for what they have sent to be answered within `timeoutMs`.
 */
export async function closeServer(
  server: Server,
  connections: Connections,
  gate: Gate,
  timeoutMs: number,
): Promise<void> {
  const startedAt = performance.now()
  const closed = once(server, 'close')
  await quiet(server, connections, WAIT_FOR_QUIET * timeoutMs)
  // Most clients come again when they are answered. Those that wait do not come while the socket closes.
  gate.shut()
  if (connections.size > 0) await quiet(server, connections, WAIT_FOR_PAUSE * timeoutMs, true)
  // What a process closes first takes much longer to close, as the code is compiled then; clients come meanwhile.
  new NetServer().close()
  await emptyTurn(server, WAIT_FOR_EMPTY_TURN * timeoutMs)
  // The close() of an HTTP server also stops to look for late requests, and some may still be arriving.
  NetServer.prototype.close.call(server)
  gate.open()
  const leftMs = startedAt + CLOSE_SILENT * timeoutMs - performance.now()
  const timer = setTimeout(() => closeSilent(server, connections), leftMs)
  await closed
  clearTimeout(timer)
}

/**
 * Settles once no connection has come or gone for a while and none is open, or `mayBeOpen`; at the latest after
 * `patienceMs`.
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
 * Settles in a turn of the event loop that found nothing to accept, and did so little that hardly anything can have
 * come since: the system resets the connections that wait to be accepted when the listening socket closes. A turn
 * accepts one connection at most. Under a flood there is no such turn, so `patienceMs` is a bound.
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
 * Closes the connections that wait for a request, or for the rest of its header: no request is lost with them, and a
 * client that sends nothing must not decide how the drain ends.
 */
function closeSilent(server: Server, connections: Connections): void {
  server.closeIdleConnections()
  for (const [socket, { latest }] of connections) {
    if (latest?.writableFinished === false) continue
    refuse(socket, new HttpError('requestTimeout'))
    // Without the time that a refused client has else to stop sending: the deadline is near.
    if (socket.writableFinished) socket.destroy()
    else socket.once('finish', () => socket.destroy())
  }
}
