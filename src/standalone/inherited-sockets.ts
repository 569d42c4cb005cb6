import type { Environment } from './settings/environment.ts'
import { SettingError } from './settings/variables.ts'

/** A socket that systemd has opened. */
export interface InheritedSocket {
  readonly descriptor: number
  readonly name: string
}

type InheritedSockets = Readonly<Partial<Record<'service' | 'admin', InheritedSocket | undefined>>>

/** SD_LISTEN_FDS_START of sd_listen_fds(3). */
const FIRST_DESCRIPTOR = 3

/**
 * Finds the sockets that systemd has opened for this process.
 * @throws SettingError if they are not those of the program
 */
export function inheritedSockets(environment: Environment, pid: number = process.pid): InheritedSockets {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = '' } = environment
  // The variables may be those of a parent.
  if (LISTEN_PID !== String(pid)) return {}
  const names = LISTEN_FDNAMES.split(':')
  const sockets = Array.from({ length: Number(LISTEN_FDS) }, (_, i) => {
    return { descriptor: FIRST_DESCRIPTOR + i, name: names[i] ?? '' }
  })
  const [service, ...others] = sockets.filter(({ name }) => name !== 'admin')
  const [admin, ...more] = sockets.filter(({ name }) => name === 'admin')
  if (service === undefined || others.length > 0 || more.length > 0) {
    throw new SettingError('LISTEN_FDS', 'takes one socket, and one more if LISTEN_FDNAMES calls it admin')
  }
  return { service, admin }
}
