import { once } from 'node:events'
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { connect, type AddressInfo, type Server } from 'node:net'
import { describeSystemError } from './log.ts'
import type { Settings } from './settings/settings.ts'
import { isSocketPath } from './settings/table.ts'
import { SettingError } from './settings/variables.ts'

interface Address extends Pick<Settings, 'host' | 'port'> {
  readonly reusePort?: boolean
  /** The variables that the address comes from. */
  readonly variables: readonly [host: string, port: string]
}

/** Where a server listens: a URL for clients, or undefined if clients can't derive one. */
export interface Listening {
  readonly description: string
  /** `http://…`, or `unix:` and the path of a Unix socket. */
  readonly url: string | undefined
}

const DESCRIPTOR = 3

/** Listens on the address of the settings, or on the socket that systemd passed. */
export async function listen(server: Server, settings: Settings, environment: NodeJS.ProcessEnv): Promise<Listening> {
  const { LISTEN_PID, LISTEN_FDS } = environment
  // If the variables were inherited from a parent process, they describe that process's sockets.
  if (LISTEN_PID === String(process.pid) && Number(LISTEN_FDS) >= 1) return listenOnDescriptor(server)
  if (isSocketPath(settings.host)) return listenOnPath(server, settings.host)
  return listenOnPort(server, { ...settings, variables: ['HOST', 'PORT'] })
}

export function listenOnAdminPort(server: Server, { host, adminHost, adminPort }: Settings): Promise<Listening> {
  const defaultHost = isSocketPath(host) ? '127.0.0.1' : host
  const hostVariable = adminHost === undefined ? 'HOST' : 'PLANT_STORE_ADMIN_HOST'
  const variables = [hostVariable, 'PLANT_STORE_ADMIN_PORT'] as const
  return listenOnPort(server, { host: adminHost ?? defaultHost, port: adminPort!, variables })
}

async function listenOnPort(server: Server, address: Address): Promise<Listening> {
  const { host, port, reusePort = false, variables } = address
  const [hostVariable, portVariable] = variables
  try {
    await once(server.listen({ host, port, reusePort }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new SettingError(`${portVariable} must be a free port on ${hostVariable}; ${port} is in use (${code})`, 1)
    if (code === 'EACCES')
      throw new SettingError(`${portVariable} must be a port that this user can listen on; ${port} is not (${code})`)
    if (code === 'ENOTSUP')
      throw new SettingError(`PLANT_STORE_REUSE_PORT must be 0, because this system cannot share a port (${code})`)
    throw new SettingError(`${hostVariable} must be a host name or address of this machine, and it is not (${code})`)
  }
  const bound = server.address() as AddressInfo
  // Show the configured host, unless it means all addresses or has a zone ID that the bound address doesn't need.
  const isConnectable = toConnectableHost(bound.address) === bound.address && !host.includes('%')
  const url = formatUrl(isConnectable ? host : bound.address, bound.port)
  return { description: url, url }
}

/** The descriptors that systemd passes start at SD_LISTEN_FDS_START, which is 3 (sd_listen_fds(3)). */
async function listenOnDescriptor(server: Server): Promise<Listening> {
  try {
    await once(server.listen({ fd: DESCRIPTOR }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SettingError(
      `LISTEN_FDS must pass a socket to listen on; file descriptor ${DESCRIPTOR} is not one (${code})`,
    )
  }
  const address = server.address() as AddressInfo | null
  // Node doesn't know the path of a Unix socket that it didn't create.
  if (address === null) return { description: 'the Unix socket that systemd passed', url: undefined }
  const url = formatUrl(address.address, address.port)
  return { description: url, url }
}

/** Replaces a stale socket file, on which no process listens, because a killed process leaves its file behind. */
async function listenOnPath(server: Server, path: string): Promise<Listening> {
  const requirement = 'HOST must be a path where a Unix socket can be created'
  try {
    if (await isStaleSocket(path)) rmSync(path)
    await once(server.listen(path), 'listening')
    chmodSync(path, 0o660)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
      throw new SettingError(`${requirement}; a process is listening on it, or it is another kind of file`, 1)
    }
    throw new SettingError(`${requirement}; creating it failed (${describeSystemError(error)})`)
  }
  return { description: `unix:${path}`, url: `unix:${path}` }
}

/** Returns whether the path is a Unix socket that no process listens on. */
async function isStaleSocket(path: string): Promise<boolean> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return false
  const socket = connect(path)
  const isRefused = await once(socket, 'connect').then(
    () => false,
    (error: unknown) => (error as NodeJS.ErrnoException).code === 'ECONNREFUSED',
  )
  socket.destroy()
  return isRefused
}

/** Returns the loopback address for `0.0.0.0` and `::`, which a server can listen on but a client can't connect to. */
export function toConnectableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function formatUrl(host: string, port: number): string {
  // In a URL, the % of a zone ID is escaped (RFC 6874). Only link-local addresses have a zone ID here.
  const connectableHost = toConnectableHost(host).replace('%', '%25')
  return `http://${connectableHost.includes(':') ? `[${connectableHost}]` : connectableHost}:${port}`
}
