import { Server, type ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import { clearTimeout, setTimeout } from 'node:timers'
import { setImmediate } from 'node:timers/promises'
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
  { drainTimeoutMs, keepAliveTimeoutMs }: { readonly drainTimeoutMs: number; readonly keepAliveTimeoutMs: number },
): Promise<number> {
  let destroyedCount = 0
  const destroyWhere = (condition: (connection: Connection) => boolean): void => {
    for (const connection of connections.values()) if (condition(connection)) connection.socket.destroy()
  }
  const timers = [
    // Node's keep-alive timeout doesn't apply to connections that browsers open in advance, and can exceed the deadline.
    setTimeout(
      destroyWhere,
      Math.min(keepAliveTimeoutMs, 0.9 * drainTimeoutMs),
      ({ latestResponse }: Connection) => latestResponse?.closed !== false,
    ),
    setTimeout(() => {
      destroyedCount = connections.size
      destroyWhere(() => true)
    }, drainTimeoutMs),
  ]
  for (const { latestResponse } of connections.values()) closeAfter(latestResponse)
  await waitUntilAccepted(server, drainTimeoutMs / 2)
  // http.Server's own close() would destroy idle connections, on which a request may just be arriving, and would stop
  // the checks for late requests.
  await new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
  for (const timer of timers) clearTimeout(timer)
  // Stops the checks, which would keep the server in memory, without emitting `close` again.
  Server.prototype.close.call(Object.create(server, { emit: { value: () => false } }))
  return destroyedCount
}

/**
 * Waits for a tick in which no connection arrives, because the kernel resets connections that haven't been accepted when
 * the server stops listening.
 */
async function waitUntilAccepted(server: Server, maxMs: number): Promise<void> {
  let count = 0
  const countConnections = (): unknown => count++
  server.on('connection', countConnections)
  const end = performance.now() + maxMs
  for (let previousCount = -1; previousCount !== count && performance.now() < end;) {
    previousCount = count
    await setImmediate()
  }
  server.off('connection', countConnections)
}
