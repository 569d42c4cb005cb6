import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A TCP proxy that a test can close, and that can drop its connections or block their data. */
export interface TcpProxy {
  readonly port: number
  /** The number of open connections. */
  readonly connectionCount: number
  /** Drops every connection, and refuses new connections until `open()`. */
  close(): Promise<void>
  open(): Promise<void>
  /** Drops every open connection. New connections are accepted. */
  dropConnections(): void
  /** Still accepts connections, but forwards no data until `unblock()`. */
  block(): void
  unblock(): void
}

/** @param delayMs latency in each direction, in milliseconds, to simulate a distant server */
export async function openTcpProxy(
  target: { readonly host: string; readonly port: number },
  delayMs = 0,
): Promise<TcpProxy> {
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
      from.on('data', (chunk) => {
        if (delayMs === 0) to.write(chunk)
        // Timers of the same duration fire in order.
        else setTimeout(() => to.destroyed || to.write(chunk), delayMs)
      })
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

  function dropConnections(): void {
    for (const socket of sockets) socket.destroy()
  }

  const port = await open(0)
  return {
    port,
    get connectionCount() {
      return sockets.size / 2
    },
    async close() {
      listener.close()
      dropConnections()
      await once(listener, 'close')
    },
    async open() {
      await open(port)
    },
    dropConnections,
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
