import { clearInterval, performance, setInterval } from '../../legacy/timers.ts'

const PROBE_INTERVAL_MS = 500

/**
 * Detects when an unresponsive server, for example behind a broken network, responds again. While the detector is
 * active, it probes the server twice a second.
 */
export class OutageDetector {
  readonly #probe: () => Promise<boolean>
  /** When the server last responded to a probe. */
  #lastResponseAt = 0
  #timer: NodeJS.Timeout | undefined
  isActive = false
  #waiters: (() => void)[] = []

  /** @param probe resolves to true if the server responds */
  constructor(probe: () => Promise<boolean>) {
    this.#probe = probe
  }

  /**
   * Starts probing, unless the server has responded to a probe since `sentAt`.
   * @param sentAt when the message that got no response was sent
   */
  begin(sentAt: number): void {
    if (sentAt <= this.#lastResponseAt || this.isActive) return
    this.isActive = true
    const probe = (): void => {
      this.#notifyWaiters()
      void this.#probe().then((isResponding) => isResponding && this.#end())
    }
    this.#timer = setInterval(probe, PROBE_INTERVAL_MS).unref()
    probe()
  }

  /**
   * Resolves when the server responds or the next probe starts. Callers loop while `isActive`. If the promise resolved
   * only at the end of the outage, calls that time out would stay in memory until then, possibly for hours.
   */
  nextProbe(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  /** Ends the current outage, and never becomes active again. */
  stop(): void {
    this.#end()
    this.#lastResponseAt = Infinity
  }

  #end(): void {
    clearInterval(this.#timer)
    this.isActive = false
    this.#lastResponseAt = Math.max(this.#lastResponseAt, performance.now())
    this.#notifyWaiters()
  }

  #notifyWaiters(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}
