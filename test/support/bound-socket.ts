import net from 'node:net'
import type { LaunchOptions } from './standalone-server.ts'

/** A bound socket on which this process doesn't accept connections. */
interface BoundSocket {
  close(): void
}

/** Binds a socket to a port of 127.0.0.1, or to the path of a Unix socket. */
export function bindSocket(portOrPath: number | string): BoundSocket {
  // `listen()` starts with this internal function, but would then accept connections in this process.
  type CreateHandle = (at: string, port: number, family: 4 | -1) => BoundSocket
  const { _createServerHandle: createHandle } = net as unknown as { readonly _createServerHandle: CreateHandle }
  return typeof portOrPath === 'number' ? createHandle('127.0.0.1', portOrPath, 4) : createHandle(portOrPath, -1, -1)
}

/** Returns launch options that pass named sockets to a program, as systemd does. */
export function createSocketActivation(sockets: Readonly<Record<string, BoundSocket>>): LaunchOptions {
  const names = Object.keys(sockets)
  return {
    prelude: `export LISTEN_PID=$$ LISTEN_FDS=${names.length} LISTEN_FDNAMES=${names.join(':')}`,
    sockets: Object.values(sockets),
  }
}
