import type { Server } from 'node:http'
import process from 'node:process'
import { lookEvery, type Connection } from './connections.ts'
import { readInSlices } from './slices.ts'

/** How many requests may wait, on all connections together, before the guard wakes. */
const MAX_WAITING = 100

/** How often the guard looks whether the event loop is late, in milliseconds. */
const LOOK_MS = 100

/** How late the event loop may be at each look, on average, in milliseconds: rounds of twice that are normal. */
const USUAL_LATE_MS = 10

/** How much later it may be for a while before the guard wakes, in milliseconds: so much is a garbage collection. */
const MAX_LATE_MS = 100

/** Keeps clients that send much at once from filling the memory and holding up the others. */
export interface Guard {
  readonly isAwake: () => boolean
  /** Takes in a new connection. */
  readonly admit: (connection: Connection) => void
  /** A request has come. */
  readonly look: () => void
  /** A request begins to wait for its turn. */
  readonly wait: (connection: Connection) => void
  /** The turn of a request that has waited has come. */
  readonly goOn: (connection: Connection) => void
}

/**
 * Makes a guard that sleeps until more than 100 requests wait on all connections together, or the event loop is late
 * again and again by the work of this process. Then all connections, those that are open and those that come, are read in slices. Few
 * clients make that necessary, and reading in slices takes Node's fast path from all of them. A connection that was
 * read in slices once stays so, as what it sent may still wait to be read.
 * @param onChange is told when the guard wakes, and when it sleeps
 * @param awakeMs how long it stays awake after the last such sign
 */
export function createGuard(
  server: Server,
  connections: readonly Connection[],
  onChange: (isAwake: boolean) => void,
  awakeMs = 60_000,
): Guard {
  const sliced = new WeakSet<Connection>()
  let timer: NodeJS.Timeout | undefined
  let waiting = 0

  function slice(connection: Connection): void {
    if (sliced.has(connection)) return
    sliced.add(connection)
    readInSlices(connection)
  }

  function sleep(): void {
    timer = undefined
    onChange(false)
  }

  function wake(): void {
    if (timer !== undefined) return void timer.refresh()
    timer = setTimeout(sleep, awakeMs).unref()
    for (const connection of connections) slice(connection)
    onChange(true)
  }

  // No count tells of all that holds others up: Node skips empty lines, for example, and tells nobody. On a busy machine
  // the loop is late too, but then this process has had no time.
  let late = 0
  let lookedAt = performance.now()
  let used = process.cpuUsage()
  function look(): void {
    const lateMs = performance.now() - lookedAt - LOOK_MS
    const { user, system } = process.cpuUsage(used)
    late = Math.max(0, late + Math.min(lateMs, (user + system) / 1000) - USUAL_LATE_MS)
    if (late > MAX_LATE_MS && connections.length > 1) {
      late = 0
      wake()
    }
    lookedAt = performance.now()
    used = process.cpuUsage()
  }
  lookEvery(LOOK_MS, server, look)

  return {
    isAwake: () => timer !== undefined,
    admit(connection) {
      if (timer !== undefined) slice(connection)
      connection.socket.once('close', () => (waiting -= connection.waiting))
    },
    look() {
      // A round may be long because of what many connections send in it. The others of them must not have to end first.
      if (performance.now() > lookedAt + LOOK_MS + USUAL_LATE_MS + MAX_LATE_MS) look()
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
