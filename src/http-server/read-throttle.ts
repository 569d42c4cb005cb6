import type { IncomingMessage } from 'node:http'
import { isPaused } from '../http/request-queue.ts'
import { scheduleTask, hasUrgentBudget } from '../scheduler.ts'
import { isBodyBufferFull, isRequestComplete, type Connection } from './connections.ts'

/** How long the first slice of a connection is, in bytes: most requests fit. */
const INITIAL_SLICE_BYTES = 256
/** How long a slice may become. The shortest request has 18 bytes, so at most 56 wait. */
const MAX_SLICE_BYTES = 1024
/** How short a slice may become: about as long as a short request. */
const MIN_SLICE_BYTES = 40

/**
 * Hands the input of a connection to Node's parser in slices, each in a round of its own, and nothing while a request
 * waits. Otherwise Node would announce all requests that one read brings: thousands. Slices become shorter while they
 * hold more than a request, and longer while they do not; what has come of a body of known length is one slice.
 * Connections that never pipelined go first. Bodies in chunks do not: a slice may have hundreds of chunks.
 */
export function throttleReads(connection: Connection): void {
  const { socket } = connection
  let isScheduled = false
  let hasPipelined = isPaused(socket)
  let sliceBytes = INITIAL_SLICE_BYTES
  /** How many of the next bytes are of a body for certain. */
  let remainingBodyBytes = 0

  function readSlice(): void {
    isScheduled = false
    const { latestResponse, requestCount } = connection
    if (isPaused(socket) || isBodyBufferFull(latestResponse?.req)) return
    const wasReadingBody = !isRequestComplete(connection)
    const length = Math.min(Math.max(remainingBodyBytes, sliceBytes), socket.readableLength)
    socket.read(length)
    const hasNewRequest = connection.requestCount > requestCount
    // The body begins somewhere in this slice, so it does not end before its length after the start of the slice.
    if (hasNewRequest) remainingBodyBytes = Number(connection.latestResponse?.req.headers['content-length'] ?? 0)
    remainingBodyBytes -= length
    const hasQueuedRequest = isPaused(socket)
    const hasCompletedRequest = (hasNewRequest || wasReadingBody) && isRequestComplete(connection)
    hasPipelined ||= hasQueuedRequest || (hasCompletedRequest && socket.readableLength > 0)
    sliceBytes = hasQueuedRequest
      ? Math.max(sliceBytes / 2, MIN_SLICE_BYTES)
      : Math.min(2 * sliceBytes, MAX_SLICE_BYTES)
    scheduleRead()
  }

  function scheduleRead(): void {
    if (isScheduled || isPaused(socket) || connection.isUpgraded) return
    // If no data is there, the end may have come, and Node must be asked for that too.
    if (socket.readableLength === 0) return void socket.read(0)
    isScheduled = true
    scheduleTask(readSlice, isUrgent())
  }

  const isUrgent = (): boolean => !hasPipelined && !hasPendingChunkedBody(connection.latestResponse?.req)

  // With this listener we choose how much to hand on. Node resumes a connection when a request or body has been read.
  socket.on('readable', () => (!isScheduled && isUrgent() && hasUrgentBudget() ? readSlice() : scheduleRead()))
  socket.on('resume', scheduleRead)
  // Node may have stopped reading, and would wait for data that it has not asked for. An empty piece ends the wait.
  socket.push('')
}

const hasPendingChunkedBody = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.headers['transfer-encoding'] !== undefined
