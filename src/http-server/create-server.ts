/**
 * The HTTP server of the program, for a listener of your own.
 * @module plant-store/server
 */

import type { RequestListener, Server } from 'node:http'
import { withDefaults, wrong } from '../option-checks.ts'
import { createHttpServer } from './http-server.ts'
import { LIMITS, PRESETS, type ServerOptions } from './limits.ts'

export type { ServerOptions } from './limits.ts'

/** A server that keeps its time-outs, refuses in JSON, and can be drained. */
export interface PlantServer {
  /** Listens when its host tells it to. */
  readonly server: Server
  /**
   * Ends every connection after its next response, and settles once the server and all connections are closed. What is
   * not closed after `drainTimeoutMs` is cut. One that was upgraded is its listener's to close.
   * @returns how many connections were cut
   */
  readonly drain: () => Promise<number>
  /** How many connections are open. */
  readonly connectionCount: () => number
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
  const limits = withDefaults(options, PRESETS, LIMITS)
  const http = createHttpServer(listener, limits)
  let draining: Promise<number> | undefined

  async function drain(): Promise<number> {
    let cut = 0
    const timer = setTimeout(() => (cut = http.cut()), limits.drainTimeoutMs)
    await http.drain()
    clearTimeout(timer)
    return cut
  }
  return {
    server: http.server,
    drain: () => (draining ??= drain()),
    connectionCount: http.connectionCount,
  }
}
