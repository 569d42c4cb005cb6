import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { reachableHost, urlOf } from './address.ts'
import type { Settings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

/** Where a server listens, and which variables say so. */
interface Place {
  readonly host: string
  readonly hostVariable: string
  readonly port: number
  readonly portVariable: string
}

/** Where the service listens. */
export function servicePlace({ host, port }: Settings): Place {
  return { host, hostVariable: 'HOST', port, portVariable: 'PORT' }
}

/** Where the admin port is, if there is one. */
export function adminPlace(settings: Settings): Place {
  const { adminHost, adminPort } = settings
  const at = { ...servicePlace(settings), port: adminPort!, portVariable: 'PLANT_STORE_ADMIN_PORT' }
  return adminHost === undefined ? at : { ...at, host: adminHost, hostVariable: 'PLANT_STORE_ADMIN_HOST' }
}

/**
 * Starts listening.
 * @returns the URL of the server
 * @throws SettingError if it cannot listen there
 */
export async function listen(server: Server, { host, hostVariable, port, portVariable }: Place): Promise<string> {
  try {
    await once(server.listen({ host, port }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
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
