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
  /** Whether a worker of node:cluster listens itself, instead of the primary for all workers. */
  readonly exclusive: boolean
}

export function getServiceTarget(settings: Settings): ListenTarget {
  return { ...settings, hostVariable: 'HOST', portVariable: 'PORT', exclusive: false }
}

/** Where the admin port is, if there is one. Nobody else listens there: what it says is about one program. */
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

/** Finds the sockets that systemd has opened for this process. @throws SettingError if they are not the program's */
export function findInheritedSockets(
  environment: NodeJS.ProcessEnv,
  pid: number = process.pid,
): { readonly service?: InheritedSocket; readonly admin?: InheritedSocket | undefined } {
  const { LISTEN_PID, LISTEN_FDS = '', LISTEN_FDNAMES = '' } = environment
  // The variables may be those of a parent.
  if (LISTEN_PID !== String(pid)) return {}
  const names = LISTEN_FDNAMES.split(':')
  const sockets = Array.from({ length: /^[12]$/.test(LISTEN_FDS) ? Number(LISTEN_FDS) : 0 }, (_, i) => {
    // The first one is SD_LISTEN_FDS_START of sd_listen_fds(3).
    return { descriptor: 3 + i, name: names[i] ?? '' }
  })
  const [service, extra] = sockets.filter(({ name }) => name !== 'admin')
  const admin = sockets.find(({ name }) => name === 'admin')
  if (service === undefined || extra !== undefined) {
    throw new SettingError('LISTEN_FDS', 'takes one socket, and one more if LISTEN_FDNAMES calls it admin')
  }
  return { service, admin }
}

export async function listen(server: Server, target: ListenTarget | InheritedSocket): Promise<string> {
  if ('descriptor' in target) return listenOnDescriptor(server, target)
  if (isSocketPath(target.host)) return listenOnPath(server, target.host, target.socketMode)
  const { host, hostVariable, port, portVariable, reusePort, exclusive } = target
  try {
    await once(server.listen({ host, port, reusePort, exclusive }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTSUP') throw new SettingError('PLANT_STORE_REUSE_PORT', 'takes 0 on this system (ENOTSUP)')
    const isInUse = code === 'EADDRINUSE'
    if (!isInUse && code !== 'EACCES') {
      throw new SettingError(hostVariable, `takes an address of this machine, and this is not one (${code})`)
    }
    const problem = `takes a port that is free on ${hostVariable}; ${port} is not (${code})`
    throw new SettingError(portVariable, problem, isInUse ? 1 : 2)
  }
  const { address, port: boundPort } = server.address() as AddressInfo
  // The host is a name that people chose, unless it stands for all addresses, or has a zone ID that the address lacks.
  return formatUrl(toConnectableHost(address) === address && !host.includes('%') ? host : address, boundPort)
}

async function listenOnDescriptor(server: Server, { descriptor, name }: InheritedSocket): Promise<string> {
  try {
    await once(server.listen({ fd: descriptor }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SettingError('LISTEN_FDS', `takes sockets to listen on, and descriptor ${descriptor} is none (${code})`)
  }
  const address = server.address() as AddressInfo | null
  // Node does not know the path of a Unix socket that it has not made.
  return address === null ? `unix:${name}` : formatUrl(address.address, address.port)
}

/** Listens on a Unix socket until the server closes. One without a listener is replaced: a killed process left it. */
async function listenOnPath(server: Server, path: string, mode: number): Promise<string> {
  // When a server closes, libuv removes the file of the name that the server was given, even if another program has
  // created it. In a shared folder such as /tmp, a name that others can guess could also exist already.
  const name = `.${randomBytes(8).toString('base64url')}`
  const temporary = join(dirname(path), name)
  let folder: number | undefined
  let inode: bigint
  try {
    if (await isStaleSocket(path)) rmSync(path)
    if (Buffer.byteLength(temporary) > MAX_SOCKET_PATH_BYTES) folder = openSync(dirname(path), 'r')
    // On Linux, an open folder has a short name too.
    const address = folder === undefined ? temporary : `/proc/self/fd/${folder}/${name}`
    // If the permissions of the file were set after it was created, others could connect before that.
    const umask = process.umask(0o777 & ~mode)
    // Otherwise the primary of node:cluster would create the file later, with the permissions of its own umask.
    const listening = once(server.listen({ path: address, exclusive: true }), 'listening')
    process.umask(umask)
    await listening
    const { ino, mode: created } = lstatSync(temporary, { bigint: true })
    // A default ACL of the folder replaces the umask. chmod would follow a symbolic link, so it runs only if needed.
    if ((Number(created) & 0o777) !== mode) chmodSync(temporary, mode)
    linkSync(temporary, path)
    inode = ino
    rmSync(temporary)
  } catch (error) {
    server.close()
    const { code } = error as NodeJS.ErrnoException
    const expectation = 'takes the path of a Unix socket that can be made'
    throw code === 'EEXIST'
      ? new SettingError(
          'HOST',
          `${expectation}; somebody listens on this one, or it is another kind of file (${code})`,
          1,
        )
      : new SettingError('HOST', `${expectation}, and this one cannot (${formatErrorCode(error)})`)
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
  function removeSocketFile(): void {
    try {
      if (lstatSync(path, { bigint: true }).ino === inode) rmSync(path)
    } catch {
      // It is gone already, or may not be removed any more.
    }
  }
  server.once('close', removeSocketFile)
  process.once('exit', removeSocketFile)
  return `unix:${path}`
}

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

/** A host of this machine that stands for an address to listen on: nobody can connect to all addresses. */
export function toConnectableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function formatUrl(host: string, port: number): string {
  // RFC 6874: only a link-local address has a zone ID here.
  const connectableHost = toConnectableHost(host).replace('%', '%25')
  return `http://${connectableHost.includes(':') ? `[${connectableHost}]` : connectableHost}:${port}`
}
