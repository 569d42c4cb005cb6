import type { Server } from 'node:http'
import { performance as nodePerformance } from 'node:perf_hooks'
import process from 'node:process'
import { performance, setTimeout } from '../timers.ts'
import { repeatWhileListening, type Connection } from './connections.ts'
import { throttleReads } from './read-throttle.ts'

const MAX_QUEUED = 100
const CHECK_INTERVAL_MS = 100
/** How long the work of a round may take, in milliseconds, on average of what the guard sees at one look. */
const MAX_TICK_MS = 20
/** How many looks in a row must see longer rounds before the guard wakes: one may have seen a garbage collection. */
const MIN_SLOW_CHECKS = 2

/** Keeps clients that send much at once from filling the memory and holding up the others. */
export interface OverloadGuard {
  readonly isActive: () => boolean
  readonly watch: (connection: Connection) => void
  readonly check: () => void
  readonly enqueue: (connection: Connection) => void
  /** The turn of a request that has waited has come. */
  readonly dequeue: (connection: Connection) => void
}

/**
 * The guard sleeps until many requests wait on all connections together, or the rounds of the event loop are long. Then
 * it reads all connections in slices, which takes Node's fast path from them, until `awakeMs` after the last such sign.
 * A connection that was read so stays so: what it sent may still wait to be read.
 */
export function createOverloadGuard(
  server: Server,
  connections: readonly Connection[],
  onChange: (isActive: boolean) => void,
  cooldownMs: number,
): OverloadGuard {
  const throttled = new WeakSet<Connection>()
  let timer: NodeJS.Timeout | undefined
  let totalQueued = 0

  function throttleConnection(connection: Connection): void {
    if (throttled.has(connection) || connection.isUpgraded) return
    throttled.add(connection)
    throttleReads(connection)
  }

  function activate(): void {
    if (timer !== undefined) return void timer.refresh()
    timer = setTimeout(() => {
      timer = undefined
      onChange(false)
    }, cooldownMs).unref()
    for (const connection of connections) throttleConnection(connection)
    onChange(true)
  }

  // No count tells of all that holds others up: Node skips empty lines, for example, and tells nobody.
  let lastCheckAt = Infinity
  let lastSample = sampleEventLoop()
  let slowChecks = 0
  function takeSample(): void {
    lastCheckAt = performance.now()
    lastSample = sampleEventLoop()
  }
  function checkEventLoop(): void {
    const { cpuMs, activeMs, ticks } = lastSample
    takeSample()
    // On a busy machine rounds are long too, but then this process has had no time. And it may have other threads.
    const workMs = Math.min(lastSample.cpuMs - cpuMs, lastSample.activeMs - activeMs)
    slowChecks = workMs > MAX_TICK_MS * Math.max(lastSample.ticks - ticks, 1) ? slowChecks + 1 : 0
    if (slowChecks >= MIN_SLOW_CHECKS && connections.length > 1) activate()
  }
  server.on('listening', takeSample)
  // A request may have looked within the same round, which must not count twice.
  repeatWhileListening(
    CHECK_INTERVAL_MS,
    server,
    () => performance.now() > lastCheckAt + CHECK_INTERVAL_MS / 2 && checkEventLoop(),
  )

  return {
    isActive: () => timer !== undefined,
    watch(connection) {
      if (timer !== undefined) throttleConnection(connection)
      connection.socket.once('close', () => (totalQueued -= connection.queuedCount))
    },
    check() {
      // A round may be long because of what many connections send in it, and must not have to end first.
      if (performance.now() > lastCheckAt + 2 * CHECK_INTERVAL_MS) checkEventLoop()
    },
    enqueue(connection) {
      connection.queuedCount++
      totalQueued++
      if (totalQueued > MAX_QUEUED) activate()
    },
    dequeue(connection) {
      connection.queuedCount--
      totalQueued--
    },
  }
}

/** How long the event loop has worked, and in how many rounds: no numbers in a runtime that does not tell. */
function sampleEventLoop(): { cpuMs: number; activeMs: number; ticks: number } {
  const { user, system } = process.cpuUsage()
  const perf: Partial<typeof nodePerformance> = nodePerformance
  const timing: Partial<typeof nodePerformance.nodeTiming> | undefined = perf.nodeTiming
  return {
    cpuMs: (user + system) / 1000,
    activeMs: Number(perf.eventLoopUtilization?.().active),
    ticks: Number(timing?.uvMetricsInfo?.loopCount),
  }
}
