import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the range of ephemeral ports, so that no other test is assigned the same port when it listens on port 0. */
const [MIN_PORT, MAX_PORT] = [20_000, 32_000]

/** Returns an unused port, for programs that can't report the port they listen on. */
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
