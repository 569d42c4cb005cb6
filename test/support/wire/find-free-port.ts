import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems hand out, so that no other test gets it by listening on port 0. */
const [MIN_PORT, MAX_PORT] = [20_000, 32_000]

/** A port on which nobody listens, for a program that cannot be asked which one it took. */
export async function findFreePort(): Promise<number> {
  const port = randomInt(MIN_PORT, MAX_PORT)
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return findFreePort()
  }
  server.close()
  await once(server, 'close')
  return port
}
