import type { TestContext } from 'node:test'
import { digestToken } from '../../../src/http/caller.ts'
import { memoryStore, type Store } from '../../../src/index.ts'
import { createProgram } from '../../../src/standalone/program.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { RawConnection } from '../wire/raw-connection.ts'
import { getPort, serve } from '../wire/service.ts'
import { parseResponses, type RawResponse } from '../wire/parse-responses.ts'

/** Tokens of the owner ada. READER_TOKEN is read-only. */
export const WRITER_TOKEN = 'writer'
export const READER_TOKEN = 'reader'

type Environment = Readonly<Record<string, string>>

/** Starts the standalone server in this process and returns its port. It is closed after the test. */
export async function serveProgram(
  t: TestContext,
  environment: Environment,
  store: Store = memoryStore(),
): Promise<number> {
  return getPort(await serve(t, createInProcessProgram(environment, store).http.server))
}

/** Like {@link serveProgram}, with an admin port. */
export async function serveWithAdmin(
  t: TestContext,
  environment: Environment = {},
  store: Store = memoryStore(),
): Promise<{ port: number; admin: string }> {
  const { http, admin } = createInProcessProgram({ PLANT_STORE_ADMIN_PORT: '0', ...environment }, store)
  const [port, adminPort] = [getPort(await serve(t, http.server)), getPort(await serve(t, admin!.server))]
  return { port, admin: `http://127.0.0.1:${adminPort}` }
}

function createInProcessProgram(environment: Environment, store: Store) {
  const settings = readSettings({ PLANT_STORE_TOKENS: `ada:${WRITER_TOKEN},ada:${READER_TOKEN} read`, ...environment })
  const authenticate = (token: string) => settings.tokens!.get(digestToken(token))
  return createProgram(settings, { store, scheme: 'memory', authenticate, isDraining: () => false })
}

/** Sends raw bytes on a new connection and returns the last response. */
export async function sendRawRequest(port: number, request: string): Promise<RawResponse> {
  const connection = await RawConnection.open(port, true)
  connection.send(request)
  await connection.waitFor(/\r\n\r\n/)
  connection.socket.end()
  return parseResponses(Buffer.from(await connection.closed, 'latin1')).responses.at(-1)!
}
