import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** An open connection. */
export interface Connection {
  readonly socket: Socket
  /** The response to the request that came last. */
  latest?: ServerResponse
  /** The response to the request that runs, or ran last. */
  current?: ServerResponse
  /** How far it had been read when its latest chunk came, and how many chunks that read has brought. */
  bytesRead?: number
  chunks: number
  /** What the guard saw when it looked last. */
  readonly seen: { latest?: ServerResponse; bytesRead: number }
  /** What it sent could not be read, and nothing more is. */
  isBroken?: true
}

export type Connections = ReadonlyMap<Duplex, Connection>

/** Keeps the open connections of a server. */
export function keepConnections(server: Server): Connections {
  const connections = new Map<Duplex, Connection>()
  server.on('connection', (socket) => {
    connections.set(socket, { socket, chunks: 0, seen: { bytesRead: 0 } })
    socket.once('close', () => connections.delete(socket))
  })
  return connections
}

/** Whether a connection waits for a request, or for the rest of its header. */
export function isSilent({ latest }: Connection): boolean {
  return latest === undefined || latest.writableFinished
}
