/**
 * The HTTP server of the program, for a listener of your own.
 * @module plant-store/server
 */

import type { RequestListener } from 'node:http'
import { withDefaults, invalidOption } from '../option-checks.ts'
import { createHttpServer, type PlantServer } from './http-server.ts'
import { LIMIT_DEFINITIONS, DEFAULT_LIMITS, type ServerOptions } from './limits.ts'

export type { PlantServer } from './http-server.ts'
export type { ServerOptions } from './limits.ts'

/**
 * Makes the server that the program uses, with a listener of yours: it keeps its time-outs, answers what `node:http`
 * refuses with an Error body, runs the requests of a connection one after another, and can be drained.
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
  if (typeof listener !== 'function') throw invalidOption('listener', 'a function', listener)
  const { server, drain, connectionCount } = createHttpServer(
    listener,
    withDefaults(options, DEFAULT_LIMITS, LIMIT_DEFINITIONS),
  )
  // A host may call it with the name of a signal.
  return { server, drain: () => drain(), connectionCount, [Symbol.asyncDispose]: () => drain().then(() => undefined) }
}
