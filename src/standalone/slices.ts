import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isHeldBack } from '../http/turn.ts'
import { inLaterTurn } from '../later-turn.ts'

/** The shortest request, `GET / HTTP/1.1` and an empty line, has 18 bytes, so a slice has at most 100 requests. */
const SLICE_BYTES = 1800

/** For a connection that pipelines: what carrying out a slice takes is what all others wait for. */
const PIPELINED_SLICE_BYTES = 128

/**
 * Hands the input of a new connection to Node's parser in slices, and nothing while a request waits for its turn. So at
 * most 100 requests of a connection wait. Otherwise Node would announce all requests that one read brings: thousands.
 * Once these are answered, the next slice has its turn among those of other connections, so that no client that pipelines
 * holds up the others.
 * @param latest returns the request that came last on the connection
 */
export function readInSlices(socket: Socket, latest: () => IncomingMessage | undefined): void {
  /** How many bytes were handed on since the latest request came, with the slice in which it began. */
  let handedOn = 0
  let isDue = false
  let sliceBytes = SLICE_BYTES

  function readOn(): void {
    // If no data is there, the end has come, and Node must be asked for that too.
    if (socket.readableLength === 0) socket.read(0)
    while (socket.readableLength > 0 && !isHeldBack(socket)) {
      const request = latest()
      if (request !== undefined && isBodyWaiting(request)) return
      const size = Math.min(socket.readableLength, Math.max(sliceBytes, bodyLeft(request)))
      socket.read(size)
      handedOn = latest() === request ? handedOn + size : size
      if (isHeldBack(socket)) sliceBytes = PIPELINED_SLICE_BYTES
    }
  }

  function readOnLater(): void {
    if (isDue || socket.readableLength === 0) return
    isDue = true
    inLaterTurn(() => {
      isDue = false
      readOn()
    })
  }

  /** How many of the next bytes are certainly those of a body, and no requests. */
  function bodyLeft(request: IncomingMessage | undefined): number {
    if (request === undefined || request.complete) return 0
    return Number(request.headers['content-length'] ?? 0) - handedOn
  }

  // With a listener for `readable`, Node lets us choose how much of the data to hand on. It resumes a connection when a
  // request no longer waits, or when the body of one is read.
  socket.on('readable', readOn).on('resume', readOnLater)
}

/** Whether a body comes faster than it is read. */
function isBodyWaiting({ complete, readableLength, readableHighWaterMark }: IncomingMessage): boolean {
  return !complete && readableLength >= readableHighWaterMark
}
