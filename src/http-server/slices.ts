import type { IncomingMessage } from 'node:http'
import { isHeldBack } from '../http/turn.ts'
import { inLaterRound, isRoundFree } from '../later-round.ts'
import { isBodyWaiting, isWhole, type Connection } from './connections.ts'

/** How long the first slice of a connection is, in bytes: most requests fit. */
const FIRST_BYTES = 256
/** How long a slice may become. The shortest request has 18 bytes, so at most 56 wait. */
const MOST_BYTES = 1024
/** How short a slice may become: about as long as a short request. */
const LEAST_BYTES = 40

/**
 * Hands the input of a connection to Node's parser in slices, each in a round of its own, and nothing while a request
 * waits. Otherwise Node would announce all requests that one read brings: thousands. Slices become shorter while they
 * hold more than a request, and longer while they do not; what has come of a body of known length is one slice.
 * Connections that never pipelined go first. Bodies in chunks do not: a slice may have hundreds of chunks.
 */
export function readInSlices(connection: Connection): void {
  const { socket } = connection
  let isDue = false
  let hasPipelined = isHeldBack(socket)
  let sliceBytes = FIRST_BYTES
  /** How many of the next bytes are of a body for certain. */
  let bodyBytes = 0

  function readSlice(): void {
    isDue = false
    const { latest, requests } = connection
    if (isHeldBack(socket) || isBodyWaiting(latest?.req)) return
    const isInBody = !isWhole(connection)
    const length = Math.min(Math.max(bodyBytes, sliceBytes), socket.readableLength)
    socket.read(length)
    const isNew = connection.requests > requests
    // The body begins somewhere in this slice, so it does not end before its length after the start of the slice.
    if (isNew) bodyBytes = Number(connection.latest?.req.headers['content-length'] ?? 0)
    bodyBytes -= length
    const hasTooMuch = isHeldBack(socket)
    const hasEnded = (isNew || isInBody) && isWhole(connection)
    hasPipelined ||= hasTooMuch || (hasEnded && socket.readableLength > 0)
    sliceBytes = hasTooMuch ? Math.max(sliceBytes / 2, LEAST_BYTES) : Math.min(2 * sliceBytes, MOST_BYTES)
    readLater()
  }

  function readLater(): void {
    if (isDue || isHeldBack(socket) || connection.isUpgraded) return
    // If no data is there, the end may have come, and Node must be asked for that too.
    if (socket.readableLength === 0) return void socket.read(0)
    isDue = true
    inLaterRound(readSlice, isUrgent())
  }

  const isUrgent = (): boolean => !hasPipelined && !isInChunks(connection.latest?.req)

  // With this listener we choose how much to hand on. Node resumes a connection when a request or body has been read.
  socket.on('readable', () => (!isDue && isUrgent() && isRoundFree() ? readSlice() : readLater()))
  socket.on('resume', readLater)
  // Node may have stopped reading, and would wait for data that it has not asked for. An empty piece ends the wait.
  socket.push('')
}

const isInChunks = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.headers['transfer-encoding'] !== undefined
