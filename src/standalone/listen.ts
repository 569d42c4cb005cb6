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

export interface Listening {
  /** Where the server listens: a URL, or `unix:` and the path of a Unix socket. */
  readonly description: string
  /** The URL for clients; undefined if it's unknown, so that no command can contain it. */
  readonly url: string | undefined
  /** What `curl` needs besides the URL: nothing, or the option for a Unix socket and a space. */
  readonly curlOption: string
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
  // Show the configured host, unless it means all addresses.
  return describePort(toConnectableHost(bound.address) === bound.address ? host : bound.address, bound.port)
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
  if (address === null) return { description: 'the Unix socket that systemd passed', url: undefined, curlOption: '' }
  return describePort(address.address, address.port)
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
  const curlOption = `--unix-socket '${path.replaceAll("'", String.raw`'\''`)}' `
  return { description: `unix:${path}`, url: 'http://localhost', curlOption }
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

function describePort(host: string, port: number): Listening {
  const connectableHost = toConnectableHost(host)
  const url = `http://${connectableHost.includes(':') ? `[${connectableHost}]` : connectableHost}:${port}`
  return { description: url, url, curlOption: '' }
}
