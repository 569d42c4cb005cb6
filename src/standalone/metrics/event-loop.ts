import { Histogram, SECONDS, type Family } from './families.ts'

const INTERVAL_MS = 100

/**
 * Measures from now on how late the event loop runs a timer. The figures of Node itself are quantiles, which cannot be
 * added up over time: a reader would have to reset them, for all other readers too.
 */
export function measureEventLoop(): Family {
  const delays = new Histogram('nodejs_eventloop_delay_seconds', 'How late the event loop ran a timer.', SECONDS)
  const series = delays.addSeries({})

  function measureNext(): void {
    const due = performance.now() + INTERVAL_MS
    setTimeout(() => {
      // A timer may be early, by less than a millisecond.
      series.observe(Math.max(0, performance.now() - due) / 1000)
      measureNext()
    }, INTERVAL_MS).unref()
  }
  measureNext()
  return delays
}
