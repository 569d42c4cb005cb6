import type { Server } from 'node:http'
import { performance as nodePerformance } from 'node:perf_hooks'
import process from 'node:process'
import { performance, setTimeout } from '../legacy/timers.ts'
import { repeatWhileListening, type Connection } from './connections.ts'
import { throttleReads } from './read-throttle.ts'

const MAX_QUEUED = 100
const CHECK_INTERVAL_MS = 100
/** A check counts as slow if the event-loop ticks since the previous check took longer than this on average. */
const MAX_TICK_MS = 20
/** How many consecutive slow checks activate the guard. A single slow check might be due to garbage collection. */
const MIN_SLOW_CHECKS = 2

/** Protects the process's memory, and the latency of other clients, against clients that pipeline or flood. */
interface OverloadGuard {
  readonly isActive: () => boolean
  /** Registers a new connection. */
  readonly watch: (connection: Connection) => void
  /** Checks for long event-loop ticks, unless the last check was recent. */
  readonly check: () => void
  /** Counts a request as waiting for its turn. */
  readonly enqueue: (connection: Connection) => void
  /** Stops counting a request as waiting, because its turn has come. */
  readonly dequeue: (connection: Connection) => void
}

/**
 * Creates a guard that activates when more than 100 requests are queued across all connections, or when event-loop
 * ticks are long. While active, it throttles the reads of all connections, which takes them off Node's fast path. The
 * guard turns off once `cooldownMs` have passed since the last sign of overload. Throttled connections remain
 * throttled, because their buffers might contain unread data.
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

  // Not every flood increases the number of queued requests. Node skips empty lines, for example, without emitting an
  // event.
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
    // Neither time is accurate by itself: the active time includes waiting for a CPU on a busy machine, and the CPU
    // time includes other threads.
    const workMs = Math.min(lastSample.cpuMs - cpuMs, lastSample.activeMs - activeMs)
    slowChecks = workMs > MAX_TICK_MS * Math.max(lastSample.ticks - ticks, 1) ? slowChecks + 1 : 0
    if (slowChecks >= MIN_SLOW_CHECKS && connections.length > 1) activate()
  }
  server.on('listening', takeSample)
  // A request might have just triggered a check in this tick. The same tick must not count as two slow checks.
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
      // Many connections can make a single tick very long. Don't wait for the interval, which fires only after that
      // tick.
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

/**
 * Returns the CPU time of the process, and the event loop's active time and number of ticks so far. Values that the
 * runtime doesn't provide are NaN.
 */
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
