import { withDeadline } from '../../maybe-promise.ts'
import { StoreUnavailableError, type Store } from '../../plants/store.ts'
import { clearTimeout, performance, setTimeout } from '../../timers.ts'
import { describeError, log } from '../log.ts'

export type Readiness = 'ready' | 'unready' | 'draining'

/** How long the answer of the store holds. Nobody needs a token to ask, and each ping is work. */
const PING_INTERVAL_MS = 1000
/** How long a ping may take. Together with the interval it is less than 2 s, so what is said is never older. */
const PING_TIMEOUT_MS = 900

/**
 * Makes the function that says whether the service is ready. While it is not ready, the store is pinged every second,
 * so that the log says when it is ready again.
 */
export function createReadiness(store: Store, isDraining: () => boolean): () => Promise<Readiness> {
  let wasReady = true
  let lastPingAt = -Infinity
  let latestPing: Promise<void>
  let timer: NodeJS.Timeout | undefined

  async function pingStore(): Promise<void> {
    try {
      await withDeadline(store.ping?.(), PING_TIMEOUT_MS, () => {
        return new StoreUnavailableError(`the store did not answer a ping within ${PING_TIMEOUT_MS} ms`)
      })
      if (!wasReady) log('ready', {})
      wasReady = true
    } catch (error) {
      if (wasReady) log('unready', { reason: describeError(error) })
      wasReady = false
      // A timer can fire up to 1 ms early, so this ping doesn't depend on how much time has passed.
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
