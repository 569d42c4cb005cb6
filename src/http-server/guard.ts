import type { Server } from 'node:http'
import { performance as nodePerformance } from 'node:perf_hooks'
import process from 'node:process'
import { performance, setTimeout } from '../timers.ts'
import { lookEvery, type Connection } from './connections.ts'
import { readInSlices } from './slices.ts'

const MAX_WAITING = 100
const LOOK_MS = 100
/** How long the work of a round may take, in milliseconds, on average of what the guard sees at one look. */
const MAX_ROUND_MS = 20
/** How many looks in a row must see longer rounds before the guard wakes: one may have seen a garbage collection. */
const LONG_LOOKS = 2

/** Keeps clients that send much at once from filling the memory and holding up the others. */
export interface Guard {
  readonly isAwake: () => boolean
  readonly admit: (connection: Connection) => void
  readonly look: () => void
  readonly wait: (connection: Connection) => void
  /** The turn of a request that has waited has come. */
  readonly goOn: (connection: Connection) => void
}

/**
 * The guard sleeps until many requests wait on all connections together, or the rounds of the event loop are long. Then
 * it reads all connections in slices, which takes Node's fast path from them, until `awakeMs` after the last such sign.
 * A connection that was read so stays so: what it sent may still wait to be read.
 */
export function createGuard(
  server: Server,
  connections: readonly Connection[],
  onChange: (isAwake: boolean) => void,
  awakeMs: number,
): Guard {
  const sliced = new WeakSet<Connection>()
  let timer: NodeJS.Timeout | undefined
  let waiting = 0

  function slice(connection: Connection): void {
    if (sliced.has(connection) || connection.isUpgraded) return
    sliced.add(connection)
    readInSlices(connection)
  }

  function wake(): void {
    if (timer !== undefined) return void timer.refresh()
    timer = setTimeout(() => {
      timer = undefined
      onChange(false)
    }, awakeMs).unref()
    for (const connection of connections) slice(connection)
    onChange(true)
  }

  // No count tells of all that holds others up: Node skips empty lines, for example, and tells nobody.
  let lookedAt = Infinity
  let seen = readLoop()
  let longLooks = 0
  function begin(): void {
    lookedAt = performance.now()
    seen = readLoop()
  }
  function look(): void {
    const { cpuMs, activeMs, rounds } = seen
    begin()
    // On a busy machine rounds are long too, but then this process has had no time. And it may have other threads.
    const workMs = Math.min(seen.cpuMs - cpuMs, seen.activeMs - activeMs)
    longLooks = workMs > MAX_ROUND_MS * Math.max(seen.rounds - rounds, 1) ? longLooks + 1 : 0
    if (longLooks >= LONG_LOOKS && connections.length > 1) wake()
  }
  server.on('listening', begin)
  // A request may have looked within the same round, which must not count twice.
  lookEvery(LOOK_MS, server, () => performance.now() > lookedAt + LOOK_MS / 2 && look())

  return {
    isAwake: () => timer !== undefined,
    admit(connection) {
      if (timer !== undefined) slice(connection)
      connection.socket.once('close', () => (waiting -= connection.waiting))
    },
    look() {
      // A round may be long because of what many connections send in it, and must not have to end first.
      if (performance.now() > lookedAt + 2 * LOOK_MS) look()
    },
    wait(connection) {
      connection.waiting++
      waiting++
      if (waiting > MAX_WAITING) wake()
    },
    goOn(connection) {
      connection.waiting--
      waiting--
    },
  }
}

/** How long the event loop has worked, and in how many rounds: no numbers in a runtime that does not tell. */
function readLoop(): { cpuMs: number; activeMs: number; rounds: number } {
  const { user, system } = process.cpuUsage()
  const loop: Partial<typeof nodePerformance> = nodePerformance
  const timing: Partial<typeof nodePerformance.nodeTiming> | undefined = loop.nodeTiming
  return {
    cpuMs: (user + system) / 1000,
    activeMs: Number(loop.eventLoopUtilization?.().active),
    rounds: Number(timing?.uvMetricsInfo?.loopCount),
  }
}
