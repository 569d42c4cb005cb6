import { createHistogram, type Family } from './families.ts'

const INTERVAL_MS = 100

/**
 * Measures from now on how late the event loop runs a timer. The figures of Node itself are quantiles, which cannot be
 * added up over time: a reader would have to reset them, for all other readers too.
 */
export function measureEventLoop(): Family {
  const delays = createHistogram('nodejs_eventloop_delay_seconds', 'How late the event loop ran a timer.')
  const observe = delays.addSeries({})

  function measureNext(): void {
    const due = performance.now() + INTERVAL_MS
    setTimeout(() => {
      // A timer may be early, by less than a millisecond.
      observe(Math.max(0, performance.now() - due) / 1000)
      measureNext()
    }, INTERVAL_MS).unref()
  }
  measureNext()
  return delays
}
