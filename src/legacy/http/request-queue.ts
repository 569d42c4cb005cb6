import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { scheduleTask } from '../scheduler.ts'
import { performance } from '../timers.ts'
import { isTruncated, isWritable, addResponseListener, socketOf, streamOf } from './transport.ts'

/** The number of waiting requests on each connection. */
const queuedCounts = new WeakMap<Duplex, number>()

/** A global symbol, because `plant-store/server` and the service might come from different copies of the package. */
const ARRIVED_AT: unique symbol = Symbol.for('plant-store.arrived')
type TimedResponse = ServerResponse & { [ARRIVED_AT]?: number }

export interface QueuedRequest {
  readonly request: IncomingMessage
  readonly response: TimedResponse
}

/**
 * Returns the `performance.now()` time at which a request arrived. A request that didn't wait has only just arrived.
 */
export const arrivedAt = (response: TimedResponse): number => response[ARRIVED_AT] ?? performance.now()

/**
 * Runs the pipelined requests on a connection one after another (RFC 9112 section 9.3.2), at most one in each
 * event-loop tick. Drops requests that follow a response that closes the connection (section 9.6), or whose client has
 * disconnected. A request waits until Node assigns the socket to its response, which happens once all earlier responses
 * have been sent. While requests wait, nothing more is read from the connection.
 * @returns whether the request has to wait
 */
export function runInOrder<A extends QueuedRequest>(
  queuedRequest: A,
  callback: (queuedRequest: A, hasWaited: boolean) => void,
): boolean {
  const { request, response } = queuedRequest
  const socket = socketOf(request)
  // If the host has already ended the response, Node never assigns the socket to it again.
  if (response.socket !== null || response.writableEnded || !isPausable(socket)) {
    if (canRespond(request)) callback(queuedRequest, false)
    return false
  }
  enqueue(queuedRequest, socket, callback)
  return true
}

function enqueue<A extends QueuedRequest>(
  queuedRequest: A,
  socket: Duplex,
  callback: (queuedRequest: A, hasWaited: boolean) => void,
): void {
  const { request, response } = queuedRequest
  response[ARRIVED_AT] = performance.now()
  const queuedCount = queuedCounts.get(socket) ?? 0
  if (queuedCount === 0) socket.on('resume', keepPaused).pause()
  queuedCounts.set(socket, queuedCount + 1)

  // Node emits `socket` once, in the async context of the previous request.
  const asyncContext = new AsyncResource('plant-store')
  addResponseListener(response, 'socket', () => {
    scheduleTask(() => {
      const remaining = queuedCounts.get(socket)! - 1
      queuedCounts.set(socket, remaining)
      if (remaining === 0) socket.off('resume', keepPaused).resume()
      if (canRespond(request)) asyncContext.runInAsyncScope(callback, undefined, queuedRequest, true)
    })
  })
}

/**
 * Node resumes a connection whenever a request is complete or a response has been sent. `resume` fires before any data.
 */
function keepPaused(this: Duplex): void {
  this.pause()
}

/** Stops reading from a connection permanently: reading doesn't resume when the waiting requests have run. */
export function stopReading(socket: Duplex): void {
  if (!isPaused(socket)) socket.on('resume', keepPaused).pause()
  queuedCounts.set(socket, Infinity)
}

export const isPaused = (socket: Duplex): boolean => (queuedCounts.get(socket) ?? 0) > 0

/**
 * Whether this is an open connection. Requests in tests may have a mock socket, or a Socket that was never connected.
 */
function isPausable(socket: Duplex | null): socket is Duplex {
  return typeof (socket as Partial<Duplex> | null)?.pause === 'function' && !(socket as Socket).pending
}

/**
 * Whether the request can still get a response. Node also emits requests that follow the last response of a connection,
 * and requests whose connection is lost.
 */
function canRespond(request: IncomingMessage): boolean {
  // HTTP/2 streams end independently of each other. `httpVersion` can't be used here: an HTTP/1 request can claim to be
  // HTTP/2.0.
  if (streamOf(request) !== undefined) return !isTruncated(request)
  return isWritable(socketOf(request))
}
