import net from 'node:net'
import type { Surroundings } from './program.ts'

/** A socket that is bound, and on which this process does not accept connections. */
interface HeldSocket {
  close(): void
}

/** Binds a socket: to a port of 127.0.0.1, or to the path of a Unix socket. */
export function openSocket(at: number | string): HeldSocket {
  // What `listen` begins with. The rest of it would accept connections here.
  type Open = (at: string, port: number, family: 4 | -1) => HeldSocket
  const { _createServerHandle: open } = net as unknown as { readonly _createServerHandle: Open }
  return typeof at === 'number' ? open('127.0.0.1', at, 4) : open(at, -1, -1)
}

/** Hands sockets to a program as systemd does, by name. */
export function asSystemd(sockets: Readonly<Record<string, HeldSocket>>): Surroundings {
  const names = Object.keys(sockets)
  return {
    prelude: `export LISTEN_PID=$$ LISTEN_FDS=${names.length} LISTEN_FDNAMES=${names.join(':')}`,
    sockets: Object.values(sockets),
  }
}
