import type { Server } from 'node:http'
import { performance as nodePerformance } from 'node:perf_hooks'
import process from 'node:process'
import { performance, setTimeout } from '../timers.ts'
import { repeatWhileListening, type Connection } from './connections.ts'
import { throttleReads } from './read-throttle.ts'

const MAX_QUEUED = 100
const CHECK_INTERVAL_MS = 100
/** A check is slow if the event-loop ticks since the previous check took longer than this on average. */
const MAX_TICK_MS = 20
/** Consecutive slow checks that activate the guard. A single one can be due to a garbage collection. */
const MIN_SLOW_CHECKS = 2

/** Protects memory and the latency of other clients from clients that pipeline or flood. */
interface OverloadGuard {
  readonly isActive: () => boolean
  /** Registers a new connection. */
  readonly watch: (connection: Connection) => void
  /** Checks for long event-loop ticks, unless the last check is recent. */
  readonly check: () => void
  /** Counts a request that has to wait for its turn. */
  readonly enqueue: (connection: Connection) => void
  /** Stops counting a request, because its turn has come. */
  readonly dequeue: (connection: Connection) => void
}

/**
 * Creates a guard that activates when more than 100 requests are queued across all connections, or when event-loop
 * ticks are long. While active, it throttles the reads of all connections, which costs them Node's fast path. It
 * deactivates `cooldownMs` after the last sign of overload. Throttled connections remain throttled, because their
 * buffers can contain unread data.
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

  // Not every flood shows in the number of queued requests: Node skips empty lines, for example, without an event.
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
    // The active time includes waiting for a CPU on a busy machine, and the CPU time includes other threads.
    const workMs = Math.min(lastSample.cpuMs - cpuMs, lastSample.activeMs - activeMs)
    slowChecks = workMs > MAX_TICK_MS * Math.max(lastSample.ticks - ticks, 1) ? slowChecks + 1 : 0
    if (slowChecks >= MIN_SLOW_CHECKS && connections.length > 1) activate()
  }
  server.on('listening', takeSample)
  // If a request has just run a check in this tick, the tick must not count as two slow checks.
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
      // Many connections can make a single tick very long. Don't wait for the interval, which runs after its end.
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

/** Returns how long the event loop has been active and how many ticks it has run so far; NaN for values that the runtime doesn't provide. */
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
