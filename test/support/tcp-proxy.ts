import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A TCP proxy that a test can close, and that can block the data of its connections. */
export interface TcpProxy {
  readonly port: number
  /** Drops every connection, and refuses new connections until `open()`. */
  close(): Promise<void>
  open(): Promise<void>
  /** Still accepts connections, but forwards no data until `unblock()`. */
  block(): void
  unblock(): void
}

export async function openTcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let isBlocked = false

  const listener = createServer((client) => {
    const server = connect(target)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from)
      if (isBlocked) from.pause()
      from.on('data', (chunk) => to.write(chunk))
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })

  async function open(port: number): Promise<number> {
    listener.listen(port, '127.0.0.1')
    await once(listener, 'listening')
    return (listener.address() as AddressInfo).port
  }

  const port = await open(0)
  return {
    port,
    async close() {
      listener.close()
      for (const socket of sockets) socket.destroy()
      await once(listener, 'close')
    },
    async open() {
      await open(port)
    },
    block() {
      isBlocked = true
      for (const socket of sockets) socket.pause()
    },
    unblock() {
      isBlocked = false
      for (const socket of sockets) socket.resume()
    },
  }
}
