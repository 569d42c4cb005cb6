import { closeSync, openSync } from 'node:fs'
import type { Server } from 'node:net'
import { devNull } from 'node:os'
import { log } from './log.ts'

/** How often the log says that connections were turned away. */
const INTERVAL_MS = 1000

/**
 * Logs, at most once a second, that connections were closed as soon as they came. Either as many are open as may be, or
 * no file descriptor is left for another one. Node does not tell of the latter, so this opens a file a second after a
 * connection came, and every second as long as that fails.
 */
export function reportTurnedAway(server: Server): void {
  let count = 0
  let timer: NodeJS.Timeout | undefined

  function report(): void {
    timer = undefined
    if (count > 0) log('connections-dropped', { count, max: server.maxConnections })
    count = 0
    const code = lackOfDescriptors()
    if (code === undefined) return
    log('descriptors-exhausted', { code })
    reportSoon()
  }
  function reportSoon(): void {
    timer ??= setTimeout(report, INTERVAL_MS).unref()
  }
  server.on('connection', reportSoon).on('drop', () => {
    count++
    reportSoon()
  })
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
