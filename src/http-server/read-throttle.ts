import type { IncomingMessage } from 'node:http'
import { isPaused } from '../legacy/http/request-queue.ts'
import { scheduleTask, hasUrgentBudget } from '../legacy/scheduler.ts'
import { isBodyBufferFull, isRequestComplete, type Connection } from './connections.ts'

/** Size of a connection's first slice. Most requests fit into it. */
const INITIAL_SLICE_BYTES = 256
/** The shortest request is 18 bytes long, so a slice queues at most 56 requests. */
const MAX_SLICE_BYTES = 1024
/** About the size of a short request. */
const MIN_SLICE_BYTES = 40

/**
 * Feeds the input of a connection to Node's parser in slices, one per tick, and pauses while a request is queued.
 * Without this, Node would emit all requests from one read in the same tick: thousands of requests if a client
 * pipelines.
 *
 * After a slice with more than one request, the next slice is half as long; after any other slice, it is twice as long.
 * The buffered part of a body with Content-Length is read as one slice. Connections that have never pipelined have
 * priority, except while a chunked body is arriving, because a slice may contain hundreds of chunks.
 */
export function throttleReads(connection: Connection): void {
  const { socket } = connection
  let isScheduled = false
  let hasPipelined = isPaused(socket)
  let sliceBytes = INITIAL_SLICE_BYTES
  /** The number of upcoming bytes that are certain to belong to a body. */
  let remainingBodyBytes = 0

  function readSlice(): void {
    isScheduled = false
    const { latestResponse, requestCount } = connection
    if (isPaused(socket) || isBodyBufferFull(latestResponse?.req)) return
    const wasReadingBody = !isRequestComplete(connection)
    const length = Math.min(Math.max(remainingBodyBytes, sliceBytes), socket.readableLength)
    socket.read(length)
    const hasNewRequest = connection.requestCount > requestCount
    updateRemainingBodyBytes(length, hasNewRequest)
    const hasQueuedRequest = isPaused(socket)
    const hasCompletedRequest = (hasNewRequest || wasReadingBody) && isRequestComplete(connection)
    hasPipelined ||= hasQueuedRequest || (hasCompletedRequest && socket.readableLength > 0)
    sliceBytes = hasQueuedRequest
      ? Math.max(sliceBytes / 2, MIN_SLICE_BYTES)
      : Math.min(2 * sliceBytes, MAX_SLICE_BYTES)
    scheduleRead()
  }

  /**
   * Subtracts a slice from the remaining body. If the slice contains a new request, the body starts after a header of
   * unknown length. Subtracting the whole slice may make the result too low, but never too high.
   */
  function updateRemainingBodyBytes(sliceLength: number, hasNewRequest: boolean): void {
    if (hasNewRequest) remainingBodyBytes = Number(connection.latestResponse?.req.headers['content-length'] ?? 0)
    remainingBodyBytes = Math.max(remainingBodyBytes - sliceLength, 0)
  }

  function scheduleRead(): void {
    if (isScheduled || isPaused(socket) || connection.isUpgraded) return
    // With an empty buffer, read(0) makes Node emit a pending `end`.
    if (socket.readableLength === 0) return void socket.read(0)
    isScheduled = true
    scheduleTask(readSlice, isUrgent())
  }

  const isUrgent = (): boolean => !hasPipelined && !hasPendingChunkedBody(connection.latestResponse?.req)

  // Pausing the socket isn't enough, because Node resumes it after each request or body. With a `readable` listener,
  // the parser gets data only through read().
  socket.on('readable', () => (!isScheduled && isUrgent() && hasUrgentBudget() ? readSlice() : scheduleRead()))
  socket.on('resume', scheduleRead)
  // Node might have stopped reading, and would then wait for data that it never requests. Pushing an empty chunk makes
  // it read again.
  socket.push('')
}

const hasPendingChunkedBody = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.headers['transfer-encoding'] !== undefined
