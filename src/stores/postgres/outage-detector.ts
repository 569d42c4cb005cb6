import { clearInterval, performance, setInterval } from '../../timers.ts'

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
   * Starts probing, unless the server has responded since a message was sent.
   * @param sentAt when the message without a response was sent
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
   * Resolves when the server responds or the next probe starts. Callers loop while `isActive`: with a promise only for
   * the end, calls that time out during an outage of hours would stay in memory until it ends.
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
