import { withDeadline } from '../../legacy/maybe-promise.ts'
import { StoreUnavailableError, type Store } from '../../legacy/plants/store.ts'
import { clearTimeout, performance, setTimeout } from '../../legacy/timers.ts'
import { describeError, log } from '../log.ts'

export type Readiness = 'ready' | 'unready' | 'draining'

/**
 * How long the result of a ping is cached. Health checks need no token, so without a cache, anyone could put load on
 * the store.
 */
const PING_INTERVAL_MS = 1000
/**
 * The timeout of a ping. Together with the interval, it's less than 2 s, so a reported state is never older than that.
 */
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
      await withDeadline(store.ping?.(), PING_TIMEOUT_MS, () => {
        return new StoreUnavailableError(`the store did not respond to a ping within ${PING_TIMEOUT_MS} ms`)
      })
      if (!wasReady) log('ready', {})
      wasReady = true
    } catch (error) {
      if (wasReady) log('unready', { reason: describeError(error) })
      wasReady = false
      // Don't check the elapsed time here: timers sometimes fire up to 1 ms early.
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
