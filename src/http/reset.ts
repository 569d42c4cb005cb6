import type { Socket } from 'node:net'

/**
 * Closes a connection whose client must not get the rest. A TCP connection is reset: the kernel then drops at once what it
 * still has for the client, and the client sees that something is missing.
 */
export function reset(socket: Socket): void {
  try {
    // Node cannot reset a socket that is ending, and would lose its descriptor.
    if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
    else socket.resetAndDestroy()
  } catch {
    // It is no TCP connection: a local socket, or one under TLS.
    socket.destroy()
  }
}
