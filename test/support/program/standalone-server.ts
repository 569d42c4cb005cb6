import type { Server } from 'node:http'
import type { TestContext } from 'node:test'
import { memoryStore, type PlantStoreOptions } from '../../../src/index.ts'
import { createHttpServer } from '../../../src/http-server/http-server.ts'
import { createProgramPaths } from '../../../src/standalone/paths/program-paths.ts'
import { createReadiness } from '../../../src/standalone/paths/readiness.ts'
import { readSettings, type Settings } from '../../../src/standalone/settings/settings.ts'
import { createService, serve } from '../wire/service.ts'

/**
 * Makes the server of the program in this process, put together as the program does it. Each token is an owner of its
 * own, unless the options say otherwise.
 */
export function createStandaloneServer(
  options: Partial<PlantStoreOptions> = {},
  limits: Partial<Settings> = {},
): Server {
  const settings = { ...readSettings({}), ...limits }
  const { store = memoryStore() } = options
  const plants = createService({ ...options, store })
  const programPaths = createProgramPaths({ readiness: createReadiness(store, () => false) }, plants)
  return createHttpServer(
    (request, response) => plants(request, response, () => programPaths(request, response)),
    settings,
  ).server
}

/** Starts what {@link createStandaloneServer} makes; it ends with the test. */
export function serveStandalone(
  t: TestContext,
  options: Partial<PlantStoreOptions> = {},
  limits: Partial<Settings> = {},
): Promise<Server> {
  return serve(t, createStandaloneServer(options, limits))
}
