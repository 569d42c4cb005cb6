import type { Socket } from 'node:net'

/**
 * Closes a connection whose client is not to get the rest. A TCP connection is reset: the kernel then forgets at once
 * what it holds for the client, instead of offering it for minutes, and the client sees that something is missing.
 */
export function reset(socket: Socket): void {
  try {
    // While a socket that was ended says so to its client, Node cannot reset it and would lose the descriptor.
    if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
    else socket.resetAndDestroy()
  } catch {
    // It is no TCP connection: a local socket, or one under TLS.
    socket.destroy()
  }
}
