import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { scheduleTask } from '../scheduler.ts'
import { performance } from '../timers.ts'
import { isTruncated, isWritable, addResponseListener, socketOf, streamOf } from './transport.ts'

/** How many requests of a connection wait for their turn. */
const queuedCounts = new WeakMap<Duplex, number>()

/** The same in every copy of the package: the copy in `plant-store/server` can differ from that of the service. */
const ARRIVED_AT: unique symbol = Symbol.for('plant-store.arrived')
type TimedResponse = ServerResponse & { [ARRIVED_AT]?: number }

export interface QueuedRequest {
  readonly request: IncomingMessage
  readonly response: TimedResponse
}

/** When a request arrived, by `performance.now()`: now, unless it has waited for its turn. */
export const arrivedAt = (response: TimedResponse): number => response[ARRIVED_AT] ?? performance.now()

/**
 * Runs the requests that a connection pipelines one after another (RFC 9112 section 9.3.2), each in a later round than
 * the one before, and none after a response that closes the connection (section 9.6) or after the client has gone. Node
 * gives a response the socket once all earlier ones are sent; until then nothing more is read from the connection.
 * @returns whether the request waits
 */
export function runInOrder<A extends QueuedRequest>(
  queuedRequest: A,
  callback: (queuedRequest: A, hasWaited: boolean) => void,
): boolean {
  const { request, response } = queuedRequest
  const socket = socketOf(request)
  // A response that the host has ended never gets the socket back.
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

  // The event comes once, in the async context of the request before.
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

/** Node resumes a connection whenever a message is complete or a response is sent. The event comes before any byte. */
function keepPaused(this: Duplex): void {
  this.pause()
}

/** Reads nothing more from a connection, whatever still waits on it. */
export function stopReading(socket: Duplex): void {
  if (!isPaused(socket)) socket.on('resume', keepPaused).pause()
  queuedCounts.set(socket, Infinity)
}

export const isPaused = (socket: Duplex): boolean => (queuedCounts.get(socket) ?? 0) > 0

/** Whether this is an open connection. A request that a test creates can have another object, or an unused Socket. */
function isPausable(socket: Duplex | null): socket is Duplex {
  return typeof (socket as Partial<Duplex> | null)?.pause === 'function' && !(socket as Socket).pending
}

/** Whether the connection can take a response. Node announces requests behind the last one, or on a lost connection. */
function canRespond(request: IncomingMessage): boolean {
  // The streams of HTTP/2 end one by one. A request on a connection of HTTP/1 may call itself HTTP/0.9 or HTTP/2.0.
  if (streamOf(request) !== undefined) return !isTruncated(request)
  return isWritable(socketOf(request))
}
