import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { listen, getPort } from './service.ts'

/**
 * A server that takes the first message of each client, in hexadecimal digits, by default as its last. It ends with the
 * test, as its sockets do.
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
