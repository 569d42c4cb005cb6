import { Server, type ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import { clearTimeout, setTimeout } from 'node:timers'
import type { Connection } from './reject.ts'

/** Makes a response the last one on its connection, in place of the previous response. */
export function closeAfter(response: ServerResponse | undefined, previous?: ServerResponse): void {
  if (previous?.headersSent === false && previous.shouldKeepAlive) previous.removeHeader('Connection')
  if (response?.headersSent === false && response.shouldKeepAlive) response.setHeader('Connection', 'close')
}

/** Closes a server gracefully, and returns the number of connections that were destroyed at the deadline. */
export async function drainServer(
  server: Server,
  connections: ReadonlyMap<unknown, Connection>,
  { drainTimeoutMs, keepAliveTimeoutMs }: Readonly<Record<'drainTimeoutMs' | 'keepAliveTimeoutMs', number>>,
): Promise<number> {
  let destroyedCount = 0
  // Node's keep-alive timeout doesn't apply to connections that browsers open in advance, and can exceed the deadline.
  const idleTimeoutMs = Math.min(keepAliveTimeoutMs, 0.9 * drainTimeoutMs)
  const idleTimer = setTimeout(() => {
    for (const { socket, latestResponse } of connections.values()) {
      if (latestResponse?.closed !== false) socket.destroy()
    }
  }, idleTimeoutMs)
  const deadline = setTimeout(() => {
    destroyedCount = connections.size
    for (const { socket } of connections.values()) socket.destroy()
  }, drainTimeoutMs)
  for (const { latestResponse } of connections.values()) closeAfter(latestResponse)
  // http.Server's own close() would destroy idle connections, on which a request may just be arriving, and would stop
  // the checks for late requests.
  await new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
  clearTimeout(idleTimer)
  clearTimeout(deadline)
  // Stops the checks, which would keep the server in memory, without emitting `close` again.
  Server.prototype.close.call(Object.create(server, { emit: { value: () => false } }))
  return destroyedCount
}
