import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How many requests wait for their turn, for each connection that has any. */
const waiting = new WeakMap<Socket, number>()

/**
 * Carries out the requests that a connection pipelines one after another (RFC 9112 section 9.3.2). Node
 * announces a request as soon as it has arrived, and gives its response the socket once all earlier ones are
 * answered. None is carried out after an answer that closes the connection, or after the client has gone.
 *
 * While a request waits, no more is read from its connection. So a client that sends without end makes the
 * service keep what one read of the socket brings, 64 KiB; the rest stays in the network.
 */
export function inTurn(request: IncomingMessage, response: ServerResponse, carryOut: () => void): void {
  // One that the host has answered will not be given the socket again.
  if (response.socket !== null || response.writableEnded) return carryOut()

  const { socket } = request
  const before = waiting.get(socket) ?? 0
  if (before === 0) socket.on('resume', pause).pause()
  waiting.set(socket, before + 1)

  response.once('socket', () => {
    const left = waiting.get(socket)! - 1
    waiting.set(socket, left)
    if (left === 0) socket.off('resume', pause).resume()
    // Node 20 and 22 hand on a connection that is lost as well.
    if (socket.writable) carryOut()
  })
}

/** Node reads on whenever a message is complete or a response is sent, and says so before a byte can come. */
function pause(this: Socket): void {
  this.pause()
}
