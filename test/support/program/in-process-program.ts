import type { TestContext } from 'node:test'
import { digestToken } from '../../../src/http/caller.ts'
import { memoryStore, type Store } from '../../../src/index.ts'
import { createProgram } from '../../../src/standalone/program.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { RawConnection } from '../wire/raw-connection.ts'
import { portOf, serve } from '../wire/service.ts'
import { readAnswers, type WireAnswer } from '../wire/wire.ts'

/** The tokens of ada; the second one may only list. */
export const WRITER = 'writer'
export const READER = 'reader'

type Environment = Readonly<Record<string, string>>

/** Starts the server of the program in this process, and gives its port. It ends with the test. */
export async function serveProgram(
  t: TestContext,
  environment: Environment,
  store: Store = memoryStore(),
): Promise<number> {
  return portOf(await serve(t, putTogether(environment, store).http.server))
}

/** As {@link serveProgram}, with the admin port too. */
export async function serveWithAdmin(
  t: TestContext,
  environment: Environment = {},
  store: Store = memoryStore(),
): Promise<{ port: number; admin: string }> {
  const { http, admin } = putTogether({ PLANT_STORE_ADMIN_PORT: '0', ...environment }, store)
  const [port, adminPort] = [portOf(await serve(t, http.server)), portOf(await serve(t, admin!.server))]
  return { port, admin: `http://127.0.0.1:${adminPort}` }
}

function putTogether(environment: Environment, store: Store) {
  const settings = readSettings({ PLANT_STORE_TOKENS: `ada:${WRITER},ada:${READER} read`, ...environment })
  const authenticate = (token: string) => settings.tokens!.get(digestToken(token))
  return createProgram(settings, { store, scheme: 'memory', authenticate, isDraining: () => false })
}

/** Sends bytes on a connection of their own, and gives the last of the answers. */
export async function ask(port: number, request: string): Promise<WireAnswer> {
  const connection = await RawConnection.open(port, true)
  connection.send(request)
  await connection.receive(/\r\n\r\n/)
  connection.socket.end()
  return readAnswers(Buffer.from(await connection.closed, 'latin1')).answers.at(-1)!
}
