import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface MessageServer {
  readonly port: number
  /** The messages, in hexadecimal digits. */
  readonly received: string[]
}

/** A server that takes the first message of each client, by default as its last. It ends with the test, as its sockets do. */
export async function takeMessages(
  t: TestContext,
  take: (socket: Socket, message: Buffer) => unknown = (socket) => socket.end(),
): Promise<MessageServer> {
  const sockets: Socket[] = []
  const received: string[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined))
    socket.once('data', (message) => {
      received.push(message.toString('hex'))
      take(socket, message)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, received }
}
