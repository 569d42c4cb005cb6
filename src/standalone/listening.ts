import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isPath, reachableHost, urlOf } from './address.ts'
import type { InheritedSocket } from './inherited-sockets.ts'
import type { Settings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'
import { listenOnPath } from './unix-socket.ts'

/** Where a server listens, and which variables say so. */
interface Place extends Pick<Settings, 'host' | 'port' | 'reusePort' | 'socketMode'> {
  readonly hostVariable: string
  readonly portVariable: string
}

export function servicePlace(settings: Settings): Place {
  return { ...settings, hostVariable: 'HOST', portVariable: 'PORT' }
}

/** Where the admin port is, if there is one. Nobody else listens there: what it says is about one program. */
export function adminPlace(settings: Settings): Place {
  const { host, adminHost, adminPort } = settings
  const at = { ...servicePlace(settings), port: adminPort!, portVariable: 'PLANT_STORE_ADMIN_PORT', reusePort: false }
  if (adminHost !== undefined) return { ...at, host: adminHost, hostVariable: 'PLANT_STORE_ADMIN_HOST' }
  return isPath(host) ? { ...at, host: '127.0.0.1' } : at
}

/**
 * Starts listening.
 * @returns the URL of the server
 * @throws SettingError if it cannot listen there
 */
export async function listen(server: Server, place: Place | InheritedSocket): Promise<string> {
  if ('descriptor' in place) return listenOnDescriptor(server, place)
  if (isPath(place.host)) return listenOnPath(server, place.host, place.socketMode)
  const { host, hostVariable, port, portVariable, reusePort } = place
  try {
    await once(server.listen({ host, port, reusePort }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTSUP') throw new SettingError('PLANT_STORE_REUSE_PORT', 'takes 0 on this system (ENOTSUP)')
    const isTaken = code === 'EADDRINUSE'
    throw isTaken || code === 'EACCES'
      ? new SettingError(
          portVariable,
          `takes a port that is free on ${hostVariable}; ${port} is not (${code})`,
          isTaken ? 1 : 2,
        )
      : new SettingError(hostVariable, `takes an address of this machine, and this is not one (${code})`)
  }
  const { address, port: realPort } = server.address() as AddressInfo
  // The host is a name that people chose, unless it stands for all addresses.
  return urlOf(reachableHost(address) === address ? host : address, realPort)
}

async function listenOnDescriptor(server: Server, { descriptor, name }: InheritedSocket): Promise<string> {
  try {
    await once(server.listen({ fd: descriptor }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SettingError('LISTEN_FDS', `takes sockets to listen on, and descriptor ${descriptor} is none (${code})`)
  }
  const at = server.address() as AddressInfo | null
  // Node does not know the path of a Unix socket that it has not made.
  return at === null ? `unix:${name}` : urlOf(at.address, at.port)
}
