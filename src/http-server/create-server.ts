/**
 * The HTTP server of the standalone server, for use with your own request listener.
 * @module plant-store/server
 */

import type { RequestListener } from 'node:http'
import { withDefaults, invalidOption } from '../legacy/option-checks.ts'
import { createHttpServer, type PlantServer } from './http-server.ts'
import { LIMIT_DEFINITIONS, DEFAULT_LIMITS, type ServerOptions } from './limits.ts'

export type { PlantServer } from './http-server.ts'
export type { ServerOptions } from './limits.ts'

/**
 * Creates the same HTTP server that the standalone server uses, but with your own request listener. The server enforces
 * timeouts, responds with a JSON `Error` body to requests that `node:http` itself rejects, runs the pipelined requests
 * on a connection one after another, and shuts down gracefully with `drain()`.
 * @throws TypeError if `listener` is not a function or if an option is unknown or out of range
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
  if (typeof listener !== 'function') throw invalidOption('listener', 'a function', listener)
  const { server, drain, connectionCount } = createHttpServer(
    listener,
    withDefaults(options, DEFAULT_LIMITS, LIMIT_DEFINITIONS),
  )
  // As a signal handler, `drain` is called with the name of the signal, which must not be passed on as `isPortShared`.
  return { server, drain: () => drain(), connectionCount, [Symbol.asyncDispose]: () => drain().then(() => undefined) }
}
