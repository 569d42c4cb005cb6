import { withDeadline } from '../plants/checked-store.ts'
import type { Store } from '../plants/store.ts'
import { describeError, log } from './log.ts'

export type Readiness = 'ready' | 'unready' | 'draining'

/** How long the result of a ping is cached. Health checks need no token, so anyone could put load on the store. */
const PING_INTERVAL_MS = 1000
/** Together with the interval, it's less than 2 s, so a reported state is never older than that. */
const PING_TIMEOUT_MS = 900

/**
 * Creates the function that checks readiness. While the store isn't ready, the function pings it every second, so
 * that a recovery is logged even without health checks.
 */
export function createReadiness(store: Store, isDraining: () => boolean): () => Promise<Readiness> {
  let wasReady = true
  let lastPingAt = -Infinity
  let latestPing: Promise<void>
  let timer: NodeJS.Timeout | undefined

  async function pingStore(): Promise<void> {
    try {
      await withDeadline(store.ping?.(), PING_TIMEOUT_MS, 'The store')
      if (!wasReady) log('ready')
      wasReady = true
    } catch (error) {
      if (wasReady) log('unready', { reason: describeError(error) })
      wasReady = false
      timer = setTimeout(() => isDraining() || startPing(), PING_INTERVAL_MS).unref()
    }
  }

  function startPing(): void {
    clearTimeout(timer)
    lastPingAt = performance.now()
    latestPing = pingStore()
  }

  return async function checkReadiness() {
    if (isDraining()) return 'draining'
    if (performance.now() - lastPingAt >= PING_INTERVAL_MS) startPing()
    await latestPing
    return wasReady ? 'ready' : 'unready'
  }
}
