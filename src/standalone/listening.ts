import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, linkSync, lstatSync, openSync, rmSync } from 'node:fs'
import { connect, type AddressInfo, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { codeOf } from './log.ts'
import { isPath, MAX_PATH_BYTES, type Settings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

interface Place extends Pick<Settings, 'host' | 'port' | 'reusePort' | 'socketMode'> {
  readonly hostVariable: string
  readonly portVariable: string
  /** Whether a worker of node:cluster listens itself, instead of the primary for all workers. */
  readonly exclusive: boolean
}

export function servicePlace(settings: Settings): Place {
  return { ...settings, hostVariable: 'HOST', portVariable: 'PORT', exclusive: false }
}

/** Where the admin port is, if there is one. Nobody else listens there: what it says is about one program. */
export function adminPlace(settings: Settings): Place {
  const { host, adminHost, adminPort } = settings
  const own = { portVariable: 'PLANT_STORE_ADMIN_PORT', reusePort: false, exclusive: true }
  const at = { ...servicePlace(settings), port: adminPort!, ...own }
  if (adminHost !== undefined) return { ...at, host: adminHost, hostVariable: 'PLANT_STORE_ADMIN_HOST' }
  return isPath(host) ? { ...at, host: '127.0.0.1' } : at
}

interface InheritedSocket {
  readonly descriptor: number
  readonly name: string
}

/** Finds the sockets that systemd has opened for this process. @throws SettingError if they are not the program's */
export function inheritedSockets(
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
  const [service, another] = sockets.filter(({ name }) => name !== 'admin')
  const admin = sockets.find(({ name }) => name === 'admin')
  if (service === undefined || another !== undefined) {
    throw new SettingError('LISTEN_FDS', 'takes one socket, and one more if LISTEN_FDNAMES calls it admin')
  }
  return { service, admin }
}

export async function listen(server: Server, place: Place | InheritedSocket): Promise<string> {
  if ('descriptor' in place) return listenOnDescriptor(server, place)
  if (isPath(place.host)) return listenOnPath(server, place.host, place.socketMode)
  const { host, hostVariable, port, portVariable, reusePort, exclusive } = place
  try {
    await once(server.listen({ host, port, reusePort, exclusive }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTSUP') throw new SettingError('PLANT_STORE_REUSE_PORT', 'takes 0 on this system (ENOTSUP)')
    const isTaken = code === 'EADDRINUSE'
    if (!isTaken && code !== 'EACCES') {
      throw new SettingError(hostVariable, `takes an address of this machine, and this is not one (${code})`)
    }
    const problem = `takes a port that is free on ${hostVariable}; ${port} is not (${code})`
    throw new SettingError(portVariable, problem, isTaken ? 1 : 2)
  }
  const { address, port: realPort } = server.address() as AddressInfo
  // The host is a name that people chose, unless it stands for all addresses, or has a zone ID that the address lacks.
  return urlOf(reachableHost(address) === address && !host.includes('%') ? host : address, realPort)
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

/** Listens on a Unix socket until the server closes. One without a listener is replaced: a killed process left it. */
async function listenOnPath(server: Server, path: string, mode: number): Promise<string> {
  // When a server closes, libuv removes the file of the name that the server was given, even if another program has
  // created it. In a shared folder such as /tmp, a name that others can guess could also exist already.
  const name = `.${randomBytes(8).toString('base64url')}`
  const temporary = join(dirname(path), name)
  let folder: number | undefined
  let own: bigint
  try {
    if (await isLeft(path)) rmSync(path)
    if (Buffer.byteLength(temporary) > MAX_PATH_BYTES) folder = openSync(dirname(path), 'r')
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
    own = ino
    rmSync(temporary)
  } catch (error) {
    server.close()
    const { code } = error as NodeJS.ErrnoException
    const takes = 'takes the path of a Unix socket that can be made'
    throw code === 'EEXIST'
      ? new SettingError('HOST', `${takes}; somebody listens on this one, or it is another kind of file (${code})`, 1)
      : new SettingError('HOST', `${takes}, and this one cannot (${codeOf(error)})`)
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
  function remove(): void {
    try {
      if (lstatSync(path, { bigint: true }).ino === own) rmSync(path)
    } catch {
      // It is gone already, or may not be removed any more.
    }
  }
  server.once('close', remove)
  process.once('exit', remove)
  return `unix:${path}`
}

async function isLeft(path: string): Promise<boolean> {
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
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function urlOf(host: string, port: number): string {
  // RFC 6874: only a link-local address has a zone ID here.
  const reachable = reachableHost(host).replace('%', '%25')
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
