import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers'
import { headerValues } from './header-fields.ts'

/** A connection on which more requests wait is destroyed. */
const MAX_WAITING = 100

/** The number of requests that wait on a connection. */
const WAITING: unique symbol = Symbol('plant-store.waiting')
/** Resolves once the latest of these requests has had its turn. */
const LATEST_TURN: unique symbol = Symbol('plant-store.latest-turn')
type Connection = Socket & { [WAITING]?: number; [LATEST_TURN]?: Promise<void> }

/**
 * Calls a function when it's the turn of a request: the pipelined requests of a connection run one after another
 * (RFC 9112 section 9.3.2), at most one in each event-loop tick. While one waits, nothing more is read from the
 * connection. If the connection ends before its turn, the function isn't called. A POST request runs once Node has parsed
 * what has arrived of its body.
 */
export function whenItsTurn<T extends { readonly request: IncomingMessage; readonly response: ServerResponse }>(
  exchange: T,
  run: (exchange: T) => void,
): void {
  const { request, response } = exchange
  const socket = request.socket as Connection | null
  // Tests and serverless adapters create requests without a socket, or with one that was never connected.
  if (isItsTurn(response) || socket?.pause === undefined || socket.pending) {
    // Microtasks run after Node has parsed the packet. If the body is complete by then, reading it from the buffer of the
    // request saves the data event and copying. There's no time to wait if the host also reads the body, or if Node could
    // reject a malformed chunk before the service rejects the header.
    const isUnreadPost = request.method === 'POST' && request.readableFlowing === null
    const canWait = isUnreadPost && headerValues(request, 'transfer-encoding').length === 0
    return canWait ? void Promise.resolve(exchange).then(run) : run(exchange)
  }
  const waiting = (socket[WAITING] ?? 0) + 1
  socket[WAITING] = waiting
  if (waiting > MAX_WAITING) socket.destroy()
  // Node resumes a connection whenever a request is complete or a response has been sent.
  else if (waiting === 1) socket.on('resume', keepPaused).pause()

  // Each request waits for the previous one, because a listener on every response would use more memory. The promise
  // keeps the async context in which the host called the service.
  socket[LATEST_TURN] = (socket[LATEST_TURN] ?? Promise.resolve()).then(async () => {
    await new Promise((resolve) => {
      if (isItsTurn(response)) setImmediate(resolve)
      else response.on('socket', () => setImmediate(resolve))
    })
    socket[WAITING] -= 1
    if (socket[WAITING] === 0) socket.off('resume', keepPaused).resume()
    run(exchange)
  })
}

/**
 * Whether a request doesn't have to wait. Node assigns the socket to a response once all earlier ones have been sent,
 * unless one of them closes the connection. A request whose response the host has already ended doesn't wait either.
 */
const isItsTurn = (response: ServerResponse): boolean => response.socket !== null || response.writableEnded

function keepPaused(this: Socket): void {
  this.pause()
}
