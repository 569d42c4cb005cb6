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
  chunksAt?: number
  chunks: number
  /** How many bytes its requests have, at most. */
  expectedBytes: number
  /** It was refused, and nothing more is read from it. */
  isBroken?: true
}

export type Connections = ReadonlyMap<Duplex, Connection>

/** Keeps the open connections of a server. */
export function keepConnections(server: Server): Connections {
  const connections = new Map<Duplex, Connection>()
  server.on('connection', (socket) => {
    connections.set(socket, { socket, chunks: 0, expectedBytes: 0 })
    socket.once('close', () => connections.delete(socket))
  })
  return connections
}

/** Whether a connection waits for a request, or for the rest of its header. */
export function isSilent({ latest }: Connection): boolean {
  return latest === undefined || latest.writableFinished
}

/** Looks again and again while a server listens. */
export function lookEvery(ms: number, server: Server, look: () => void): void {
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => (timer = setInterval(look, ms).unref()))
  server.on('close', () => clearInterval(timer))
}
