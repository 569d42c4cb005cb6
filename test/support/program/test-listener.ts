import type { RequestListener, Server } from 'node:http'
import type { TestContext } from 'node:test'
import { memoryStore, type PlantStoreOptions } from '../../../src/index.ts'
import { createHttpServer } from '../../../src/http-server/http-server.ts'
import { createProgramListener, type ProgramOptions } from '../../../src/standalone/paths/program-listener.ts'
import { createReadiness } from '../../../src/standalone/paths/readiness.ts'
import { createProgramRouter } from '../../../src/standalone/requests.ts'
import type { Limits } from '../../../src/http-server/limits.ts'
import { RawConnection } from '../wire/raw-connection.ts'
import { createService, serve } from '../wire/service.ts'

/**
 * Creates the request listener of the standalone server. By default, every token is valid and identifies an owner of
 * the same name.
 */
export function createTestListener(
  options: Partial<PlantStoreOptions> = {},
  documents?: ProgramOptions['documents'],
  isDraining = false,
): RequestListener {
  const { store = memoryStore() } = options
  const plants = createService({ ...options, store })
  const readiness = createReadiness(store, () => isDraining)
  const findResource = createProgramRouter(['/livez', '/readyz', '/openapi.json', ...(documents?.keys() ?? [])])
  return createProgramListener({ checkReadiness: readiness, ...(documents && { documents }) }, findResource, plants)
}

/** Starts an HTTP server for {@link createTestListener}. It is closed after the test. */
export function serveStandalone(
  t: TestContext,
  options?: Partial<PlantStoreOptions>,
  limits?: Partial<Limits>,
): Promise<Server> {
  return serve(t, createHttpServer(createTestListener(options), limits).server)
}

/** Activates the overload guard of a server by pipelining more requests than it can queue. */
export async function triggerOverloadGuard(server: Server): Promise<void> {
  const client = await RawConnection.open(server)
  await client.send('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(102)).readResponses(102)
  client.socket.destroy()
}
