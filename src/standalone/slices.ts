import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isHeldBack } from '../http/turn.ts'

/** The shortest request, `GET / HTTP/1.1` and an empty line, has 18 bytes: so at most 100 requests are in a slice. */
const SLICE_BYTES = 1800

/**
 * Hands what comes on a new connection to Node's parser in slices, and nothing while a request waits for its turn. So
 * at most 100 requests of a connection wait. Otherwise Node would announce all that one read brings, thousands.
 * @param latest the request that came last on the connection
 */
export function readInSlices(socket: Socket, latest: () => IncomingMessage | undefined): void {
  /** The bytes that were handed on since the latest request came, with the slice that it began in. */
  let handedOn = 0

  function readOn(): void {
    // Then it is the end that has come, and Node wants to be asked for that too.
    if (socket.readableLength === 0) socket.read(0)
    while (socket.readableLength > 0 && !isHeldBack(socket)) {
      const request = latest()
      if (request !== undefined && isBodyWaiting(request)) return
      const size = Math.min(socket.readableLength, Math.max(SLICE_BYTES, bodyLeft(request)))
      socket.read(size)
      handedOn = latest() === request ? handedOn + size : size
    }
  }

  /** So many bytes are body for certain, and no requests. */
  function bodyLeft(request: IncomingMessage | undefined): number {
    if (request === undefined || request.complete) return 0
    return Number(request.headers['content-length'] ?? 0) - handedOn
  }

  // With a listener for `readable` Node leaves it to us how much of the data that has come is handed on. It resumes a
  // connection when a request waits no more, or the body of one is read.
  socket.on('readable', readOn).on('resume', readOn)
}

/** Whether a body comes faster than it is read. */
function isBodyWaiting({ complete, readableLength, readableHighWaterMark }: IncomingMessage): boolean {
  return !complete && readableLength >= readableHighWaterMark
}
