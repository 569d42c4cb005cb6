import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { reset } from '../http/transport.ts'
import { connectionOf, isSilent, lookEvery, type Connection } from './connections.ts'

/** By Node's own timer of a socket, which sees how far a write has come. It is set while bytes wait for the client. */
export function cutStalled(server: Server, connections: readonly Connection[], stallTimeoutMs: number): void {
  lookEvery(Math.ceil(stallTimeoutMs / 4), server, () => {
    for (const { isUpgraded, socket } of connections) {
      if (!isUpgraded && socket.writableLength > 0 && socket.timeout !== stallTimeoutMs)
        socket.setTimeout(stallTimeoutMs)
    }
  })

  // This replaces what Node does after its own time-outs too.
  server.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) reset(socket)
    // Otherwise it is the store that is slow.
    else if (isSilent(connectionOf(socket)!)) socket.destroy()
  })
}
