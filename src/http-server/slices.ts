import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isHeldBack } from '../http/turn.ts'
import { inLaterRound } from '../later-round.ts'

/** How long a slice is. The shortest request, `GET / HTTP/1.1` and an empty line, has 18 bytes: so at most 14 wait. */
const SLICE_BYTES = 256

/** The same for a connection that pipelines: about a request. Other connections wait until a slice is carried out. */
const PIPELINED_SLICE_BYTES = 40

/**
 * Hands the input of a connection to Node's parser in slices, each in a round of the event loop that other connections
 * share, and nothing while a request waits. Otherwise Node would announce all requests that one read brings: thousands.
 * @param latest returns the request that came last on the connection
 */
export function readInSlices(socket: Socket, latest: () => IncomingMessage | undefined): void {
  let sliceBytes = SLICE_BYTES
  let isDue = false

  function readSlice(): void {
    if (isHeldBack(socket) || isBodyWaiting(latest())) return
    // If no data is there, the end has come, and Node must be asked for that too.
    if (socket.readableLength === 0) socket.read(0)
    else socket.read(Math.min(socket.readableLength, sliceBytes))
    if (isHeldBack(socket)) sliceBytes = PIPELINED_SLICE_BYTES
    readLater()
  }

  function readLater(): void {
    if (isDue || socket.readableLength === 0) return
    isDue = true
    inLaterRound(() => {
      isDue = false
      readSlice()
    })
  }

  // With a listener for `readable`, Node lets us choose how much of the data to hand on. It resumes a connection when a
  // request no longer waits, or when the body of one is read.
  socket.on('readable', () => isDue || readSlice()).on('resume', readLater)
  // Node may have stopped reading, and would wait for data that it has not asked for. An empty piece ends the wait.
  socket.push('')
}

/** Whether a body comes faster than it is read. */
function isBodyWaiting(request: IncomingMessage | undefined): boolean {
  return request?.complete === false && request.readableLength >= request.readableHighWaterMark
}
