import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { inLaterRound } from '../later-round.ts'
import { performance } from '../timers.ts'
import { isTruncated, isWritable, listenTo, socketOf, streamOf } from './transport.ts'

/** How many requests of a connection wait for their turn. */
const waiting = new WeakMap<Duplex, number>()

/** The same in every copy of the package: the copy in `plant-store/server` can differ from that of the service. */
const ARRIVED: unique symbol = Symbol.for('plant-store.arrived')
type Arrived = ServerResponse & { [ARRIVED]?: number }

export interface Arrival {
  readonly request: IncomingMessage
  readonly response: Arrived
}

/** When a request arrived, by `performance.now()`: now, unless it has waited for its turn. */
export const arrivalOf = (response: Arrived): number => response[ARRIVED] ?? performance.now()

/**
 * Runs the requests that a connection pipelines one after another (RFC 9112 section 9.3.2), each in a later round than
 * the one before, and none after a response that closes the connection (section 9.6) or after the client has gone. Node
 * gives a response the socket once all earlier ones are sent; until then nothing more is read from the connection.
 * @returns whether the request waits
 */
export function inTurn<A extends Arrival>(arrival: A, run: (arrival: A, hasWaited: boolean) => void): boolean {
  const { request, response } = arrival
  const socket = socketOf(request)
  // A response that the host has ended never gets the socket back.
  if (response.socket !== null || response.writableEnded || !isPausable(socket)) {
    if (isOpen(request)) run(arrival, false)
    return false
  }
  wait(arrival, socket, run)
  return true
}

function wait<A extends Arrival>(arrival: A, socket: Duplex, run: (arrival: A, hasWaited: boolean) => void): void {
  const { request, response } = arrival
  response[ARRIVED] = performance.now()
  const before = waiting.get(socket) ?? 0
  if (before === 0) socket.on('resume', pause).pause()
  waiting.set(socket, before + 1)

  // The event comes once, in the async context of the request before.
  const context = new AsyncResource('plant-store')
  listenTo(response, 'socket', () => {
    inLaterRound(() => {
      const left = waiting.get(socket)! - 1
      waiting.set(socket, left)
      if (left === 0) socket.off('resume', pause).resume()
      if (isOpen(request)) context.runInAsyncScope(run, undefined, arrival, true)
    })
  })
}

/** Node resumes a connection whenever a message is complete or a response is sent. The event comes before any byte. */
function pause(this: Duplex): void {
  this.pause()
}

/** Reads nothing more from a connection, whatever still waits on it. */
export function stopReading(socket: Duplex): void {
  if (!isHeldBack(socket)) socket.on('resume', pause).pause()
  waiting.set(socket, Infinity)
}

export const isHeldBack = (socket: Duplex): boolean => (waiting.get(socket) ?? 0) > 0

/** Whether this is an open connection. A request that a test creates can have another object, or an unused Socket. */
function isPausable(socket: Duplex | null): socket is Duplex {
  return typeof (socket as Partial<Duplex> | null)?.pause === 'function' && !(socket as Socket).pending
}

/** Whether the connection can take a response. Node announces requests behind the last one, or on a lost connection. */
function isOpen(request: IncomingMessage): boolean {
  // The streams of HTTP/2 end one by one. A request on a connection of HTTP/1 may call itself HTTP/0.9 or HTTP/2.0.
  if (streamOf(request) !== undefined) return !isTruncated(request)
  return isWritable(socketOf(request))
}
