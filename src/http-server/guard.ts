import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { connectionOf, lookEvery, type Connection } from './connections.ts'
import { readInSlices } from './slices.ts'

/** How many requests of a connection may wait, or how many chunks one read may bring, before the guard wakes. */
const MAX_PIECES = 100

/** How often the guard looks for connections that bring more than requests, in milliseconds. */
const LOOK_MS = 100

/** How many bytes the line before a chunk may have. */
const CHUNK_LINE_BYTES = 1024

/** Keeps clients that send too much in small pieces from filling the memory and holding up the others. */
export interface Guard {
  readonly isAwake: () => boolean
  /** Takes note of how many requests of a connection wait. */
  readonly watch: (waiting: number) => void
  /** Takes note of how many bytes a request may have, and of its chunks: one read may bring ten thousand. */
  readonly expect: (connection: Connection, request: IncomingMessage) => void
  /** Takes in a new connection. */
  readonly admit: (socket: Socket) => void
}

/**
 * Makes a guard that sleeps until more than 100 requests of a connection wait, one read brings more than 100 chunks, or
 * a connection sends empty lines without end. Then all connections, those that are open and those that come, are read
 * in slices. Hardly any client does so, and reading in slices takes Node's fast path from all of them. A connection that
 * was read in slices once stays so, as what it sent may still wait to be read.
 * @param onChange is told when the guard wakes, and when it sleeps
 * @param awakeMs how long it stays awake after the last sign of a client that sends too much in small pieces
 */
export function createGuard(
  server: Server,
  connections: readonly Connection[],
  maxHeaderBytes: number,
  onChange: (isAwake: boolean) => void,
  awakeMs = 60_000,
): Guard {
  const sliced = new WeakSet<Connection>()
  let timer: NodeJS.Timeout | undefined

  function slice(connection: Connection): void {
    if (sliced.has(connection)) return
    sliced.add(connection)
    readInSlices(connection.socket, () => connection.latest?.req)
  }

  function sleep(): void {
    timer = undefined
    onChange(false)
  }

  function watch(pieces: number): void {
    if (pieces > MAX_PIECES) wake()
  }

  function wake(): void {
    if (timer !== undefined) return void timer.refresh()
    timer = setTimeout(sleep, awakeMs).unref()
    for (const connection of connections) slice(connection)
    onChange(true)
  }

  // Node skips empty lines before a request, and tells nobody. A sound client brings requests, and part of a header.
  lookEvery(LOOK_MS, server, () => {
    for (const connection of connections) {
      const { socket, expectedBytes, isBroken = false } = connection
      const parsedBytes = socket.bytesRead - socket.readableLength
      if (isBroken || parsedBytes <= expectedBytes + maxHeaderBytes) continue
      connection.expectedBytes = parsedBytes
      wake()
    }
  })

  return {
    isAwake: () => timer !== undefined,
    watch,
    expect(connection, request) {
      const { 'content-length': length = 0, 'transfer-encoding': coding } = request.headers
      connection.expectedBytes += maxHeaderBytes + Number(length)
      if (coding === undefined) return
      function count(chunk: Buffer | string): void {
        const { bytesRead } = connection.socket
        if (connection.chunksAt !== bytesRead) Object.assign(connection, { chunksAt: bytesRead, chunks: 0 })
        connection.expectedBytes += CHUNK_LINE_BYTES + Buffer.byteLength(chunk)
        watch(++connection.chunks)
      }
      // A listener for `data` would begin to read the body.
      request.once('resume', () => request.on('data', count))
    },
    admit(socket) {
      if (timer !== undefined) slice(connectionOf(socket)!)
    },
  }
}
