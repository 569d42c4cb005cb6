import { closeSync, openSync } from 'node:fs'
import type { Server } from 'node:net'
import { devNull } from 'node:os'
import { log } from './log.ts'
import { throttle } from './throttle.ts'

/**
 * Logs, at most once a second, that connections were closed as soon as they came: because `maxConnections` are open, or
 * no file descriptor is left. Node does not tell of the latter, so this opens a file when a connection has come, and
 * then every second until it succeeds.
 */
export function reportTurnedAway(server: Server): void {
  const reportDrops = throttle((count) => log('connections-dropped', { count, max: server.maxConnections }))
  const look = throttle(() => {
    const code = lackOfDescriptors()
    if (code === undefined) return
    log('descriptors-exhausted', { code })
    look()
  })
  server.on('connection', look).on('drop', reportDrops)
}

/** The code of the error if no file can be opened now: the process, or the system, has reached its limit. */
function lackOfDescriptors(): string | undefined {
  try {
    closeSync(openSync(devNull, 'r'))
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}
