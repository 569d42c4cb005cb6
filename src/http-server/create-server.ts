/**
 * The HTTP server of the program, for a listener of your own.
 * @module plant-store/server
 */

import type { RequestListener, Server } from 'node:http'
import { resolveOptions, wrong } from '../option-checks.ts'
import { createHttpServer } from './http-server.ts'
import { DEFAULT_LIMITS } from './limits.ts'

/** A server that keeps its time-outs, refuses in JSON, and can be drained. */
export interface PlantServer {
  /** Listens when its host tells it to. */
  readonly server: Server
  /**
   * Ends every connection after its next response, and settles once the server and all connections are closed. What is
   * not closed after `drainTimeoutMs` is cut.
   * @returns how many connections were cut
   */
  readonly drain: () => Promise<number>
  /** How many connections are open. */
  readonly connectionCount: () => number
}

/** What a host may set. Every option has a default. */
export interface ServerOptions {
  /**
   * How long the header of a request may take to arrive, in milliseconds, at least 1.
   * @default 10_000
   */
  readonly headersTimeoutMs?: number | undefined
  /**
   * How long a whole request may take to arrive, in milliseconds, at least 1.
   * @default 30_000
   */
  readonly requestTimeoutMs?: number | undefined
  /**
   * How long an idle connection stays open, in milliseconds, at least 1.
   * @default 5_000
   */
  readonly keepAliveTimeoutMs?: number | undefined
  /**
   * How long a client may take nothing of its response, in milliseconds, at least 1.
   * @default 60_000
   */
  readonly stallTimeoutMs?: number | undefined
  /**
   * How often the server looks for requests that are late, in milliseconds, at least 1.
   * @default 500
   */
  readonly checkIntervalMs?: number | undefined
  /**
   * How long a drain may take, in milliseconds, at least 1.
   * @default 10_000
   */
  readonly drainTimeoutMs?: number | undefined
  /**
   * The most bytes that the header of a request may have, 1,024 to 1,048,576.
   * @default 16_384
   */
  readonly maxHeaderBytes?: number | undefined
  /**
   * The most connections at a time, at least 1.
   * @default 1_000
   */
  readonly maxConnections?: number | undefined
}

/**
 * Makes the server that the program uses, with a listener of yours: it keeps its time-outs, answers what `node:http`
 * refuses with an Error body, carries out the requests of a connection one after another, and can be drained.
 * @throws TypeError if an option is wrong
 *
 * @example
 * import { createPlantStore } from 'plant-store'
 * import { createServer } from 'plant-store/server'
 *
 * const plants = createPlantStore({ tokens: { 'a-long-random-token': 'ada' } })
 * const { server, drain } = createServer(plants)
 *
 * server.listen(3000)
 * process.once('SIGTERM', drain)
 */
export function createServer(listener: RequestListener, options: ServerOptions = {}): PlantServer {
  if (typeof listener !== 'function') throw wrong('listener', 'a function', listener)
  const limits = resolveOptions(options, DEFAULT_LIMITS, { maxHeaderBytes: [1024, 2 ** 20] })
  const http = createHttpServer(listener, limits)
  let draining: Promise<number> | undefined

  async function drain(): Promise<number> {
    let cut = 0
    const timer = setTimeout(() => {
      cut = http.connectionCount()
      http.server.closeAllConnections()
    }, limits.drainTimeoutMs)
    await http.drain()
    clearTimeout(timer)
    return cut
  }
  return {
    server: http.server,
    drain: () => (draining ??= drain()),
    connectionCount: () => http.connectionCount(),
  }
}
