import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, linkSync, lstatSync, openSync, rmSync } from 'node:fs'
import { connect, type AddressInfo, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { formatErrorCode } from './log.ts'
import { isSocketPath, MAX_SOCKET_PATH_BYTES, type Settings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

interface ListenTarget extends Pick<Settings, 'host' | 'port' | 'reusePort' | 'socketMode'> {
  readonly hostVariable: string
  readonly portVariable: string
  /** Whether a node:cluster worker opens its own listening socket instead of sharing the primary's socket. */
  readonly exclusive: boolean
}

export function getServiceTarget(settings: Settings): ListenTarget {
  return { ...settings, hostVariable: 'HOST', portVariable: 'PORT', exclusive: false }
}

/**
 * Returns the address to listen on for the admin port. Processes never share this port, because its metrics are per
 * process.
 */
export function getAdminTarget(settings: Settings): ListenTarget {
  const { host, adminHost, adminPort } = settings
  const overrides = { portVariable: 'PLANT_STORE_ADMIN_PORT', reusePort: false, exclusive: true }
  const target = { ...getServiceTarget(settings), port: adminPort!, ...overrides }
  if (adminHost !== undefined) return { ...target, host: adminHost, hostVariable: 'PLANT_STORE_ADMIN_HOST' }
  return isSocketPath(host) ? { ...target, host: '127.0.0.1' } : target
}

interface InheritedSocket {
  readonly descriptor: number
  readonly name: string
}

/**
 * Returns the sockets that systemd passed to this process.
 * @throws SettingError unless there is exactly one socket for the service, and at most one named `admin`
 */
export function findInheritedSockets(
  environment: NodeJS.ProcessEnv,
  pid: number = process.pid,
): { readonly service?: InheritedSocket; readonly admin?: InheritedSocket | undefined } {
  const { LISTEN_PID, LISTEN_FDS = '', LISTEN_FDNAMES = '' } = environment
  // If the variables were inherited from a parent process, they describe that process's sockets.
  if (LISTEN_PID !== String(pid)) return {}
  const names = LISTEN_FDNAMES.split(':')
  const sockets = Array.from({ length: /^[12]$/.test(LISTEN_FDS) ? Number(LISTEN_FDS) : 0 }, (_, i) => {
    // Descriptors start at SD_LISTEN_FDS_START, which is 3 (sd_listen_fds(3)).
    return { descriptor: 3 + i, name: names[i] ?? '' }
  })
  const [service, extra] = sockets.filter(({ name }) => name !== 'admin')
  const admin = sockets.find(({ name }) => name === 'admin')
  if (service === undefined || extra !== undefined) {
    throw new SettingError(
      'LISTEN_FDS must pass one socket for the service, and optionally one named admin in LISTEN_FDNAMES',
    )
  }
  return { service, admin }
}

/** Starts listening, and returns the URL of the server: `http://…`, or `unix:…` for a Unix socket. */
export async function listen(server: Server, target: ListenTarget | InheritedSocket): Promise<string> {
  if ('descriptor' in target) return listenOnDescriptor(server, target)
  if (isSocketPath(target.host)) return listenOnPath(server, target.host, target.socketMode)
  const { host, hostVariable, port, portVariable, reusePort, exclusive } = target
  try {
    await once(server.listen({ host, port, reusePort, exclusive }), 'listening')
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
  const { address, port: boundPort } = server.address() as AddressInfo
  // Show the configured host, unless it means all addresses or has a zone ID that the bound address doesn't need.
  return formatUrl(toConnectableHost(address) === address && !host.includes('%') ? host : address, boundPort)
}

async function listenOnDescriptor(server: Server, { descriptor, name }: InheritedSocket): Promise<string> {
  try {
    await once(server.listen({ fd: descriptor }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SettingError(
      `LISTEN_FDS must pass sockets to listen on; file descriptor ${descriptor} is not one (${code})`,
    )
  }
  const address = server.address() as AddressInfo | null
  // Node doesn't report the path of a Unix socket that it didn't create.
  return address === null ? `unix:${name}` : formatUrl(address.address, address.port)
}

/**
 * Listens on a Unix socket, and removes its file when the server closes. Replaces a stale socket file, on which no
 * process listens, because a killed process leaves its file behind.
 */
async function listenOnPath(server: Server, path: string, mode: number): Promise<string> {
  // Listen under a temporary name, then link the socket to the real path: when a server closes, libuv removes the file
  // under the name that it was given, even if that is another process's file by then. The name is random because in a
  // shared directory such as /tmp, another user could create a file whose name is easy to guess.
  const name = `.${randomBytes(8).toString('base64url')}`
  const temporary = join(dirname(path), name)
  let folder: number | undefined
  let inode: bigint
  try {
    if (await isStaleSocket(path)) rmSync(path)
    if (Buffer.byteLength(temporary) > MAX_SOCKET_PATH_BYTES) folder = openSync(dirname(path), 'r')
    // On Linux, /proc/self/fd gives an open directory a short path.
    const address = folder === undefined ? temporary : `/proc/self/fd/${folder}/${name}`
    // The umask gives the file the right permissions from the start. Until a later chmod, other users could connect.
    const umask = process.umask(0o777 & ~mode)
    // Without `exclusive`, the node:cluster primary would create the file later, with its own umask.
    const listening = once(server.listen({ path: address, exclusive: true }), 'listening')
    process.umask(umask)
    await listening
    const { ino, mode: created } = lstatSync(temporary, { bigint: true })
    // A default ACL on the directory overrides the umask. chmod follows symbolic links, so it runs only if necessary.
    if ((Number(created) & 0o777) !== mode) chmodSync(temporary, mode)
    linkSync(temporary, path)
    inode = ino
    rmSync(temporary)
  } catch (error) {
    server.close()
    const { code } = error as NodeJS.ErrnoException
    const message = 'HOST must be a path where a Unix socket can be created'
    throw code === 'EEXIST'
      ? new SettingError(`${message}; a process is listening on it, or it is another kind of file (${code})`, 1)
      : new SettingError(`${message}; creating it failed (${formatErrorCode(error)})`)
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
  function removeSocketFile(): void {
    try {
      if (lstatSync(path, { bigint: true }).ino === inode) rmSync(path)
    } catch {
      // The file has already been removed, or this process no longer has permission to remove it.
    }
  }
  server.once('close', removeSocketFile)
  process.once('exit', removeSocketFile)
  return `unix:${path}`
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
