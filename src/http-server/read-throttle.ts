import type { IncomingMessage } from 'node:http'
import { isPaused } from '../http/request-queue.ts'
import { scheduleTask, hasUrgentBudget } from '../scheduler.ts'
import { isBodyBufferFull, isRequestComplete, type Connection } from './connections.ts'

/** Size of a connection's first slice. Most requests fit. */
const INITIAL_SLICE_BYTES = 256
/** The shortest request has 18 bytes, so at most 56 requests of a slice are queued. */
const MAX_SLICE_BYTES = 1024
/** About the size of a short request. */
const MIN_SLICE_BYTES = 40

/**
 * Feeds the input of a connection to Node's parser in slices, one per tick, and pauses while a request is queued.
 * Without this, Node emits all requests of a read in the same tick: thousands if a client pipelines.
 *
 * After a slice with more than one request, the next slice is half as long, and otherwise twice as long. The buffered
 * part of a body with Content-Length is one slice. Connections that have never pipelined have priority, except while a
 * chunked body is arriving, because a slice can contain hundreds of chunks.
 */
export function throttleReads(connection: Connection): void {
  const { socket } = connection
  let isScheduled = false
  let hasPipelined = isPaused(socket)
  let sliceBytes = INITIAL_SLICE_BYTES
  /** How many of the next bytes certainly belong to a body. */
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
   * Subtracts a slice from the remaining body. In a slice with a new request, the body starts after a header of unknown
   * length. Subtracting the whole slice can only make the result too low.
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

  // With a `readable` listener, only read() passes data on. Node resumes the socket after each request or body.
  socket.on('readable', () => (!isScheduled && isUrgent() && hasUrgentBudget() ? readSlice() : scheduleRead()))
  socket.on('resume', scheduleRead)
  // Node may have stopped reading and would then wait for data that nobody requested. An empty chunk ends that state.
  socket.push('')
}

const hasPendingChunkedBody = (request: IncomingMessage | undefined): boolean =>
  request?.complete === false && request.headers['transfer-encoding'] !== undefined
