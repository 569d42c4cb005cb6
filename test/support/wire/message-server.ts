import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { listen, getPort } from './service.ts'

/**
 * Starts a TCP server that records the first message of each client as hexadecimal digits, and by default closes the
 * connection then. The server and its sockets are closed after the test.
 */
export async function startMessageServer(
  t: TestContext,
  onMessage: (socket: Socket, message: Buffer) => unknown = (socket) => socket.end(),
): Promise<{ readonly port: number; readonly received: string[] }> {
  const sockets: Socket[] = []
  const received: string[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined))
    socket.once('data', (message) => {
      received.push(message.toString('hex'))
      onMessage(socket, message)
    })
  })
  await listen(server)
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: getPort(server), received }
}
