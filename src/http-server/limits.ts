import { MAX_TIMER_MS } from '../legacy/option-checks.ts'

/** Timeouts and limits of the HTTP server. Every option has a default. */
export interface ServerOptions {
  /** Time for the complete header section of a request to arrive, in milliseconds, at least 1. @default 10_000 */
  readonly headersTimeoutMs?: number | undefined
  /** Time for a complete request to arrive, body included, in milliseconds, at least 1. @default 30_000 */
  readonly requestTimeoutMs?: number | undefined
  /**
   * Idle timeout of keep-alive connections, as announced in the `Keep-Alive` header, in milliseconds, at least 1. Node
   * closes a connection 1 s later than that, so that it is still open for a request sent just before the timeout.
   * @default 5_000
   */
  readonly keepAliveTimeoutMs?: number | undefined
  /**
   * Time after which a connection is reset if response data is pending and the client accepts none of it, in
   * milliseconds, at least 1.
   * @default 60_000
   */
  readonly stallTimeoutMs?: number | undefined
  /** Interval of the checks for late requests, in milliseconds, at least 1. @default 500 */
  readonly checkIntervalMs?: number | undefined
  /** Time after which a drain destroys the remaining connections, in milliseconds, at least 1. @default 10_000 */
  readonly drainTimeoutMs?: number | undefined
  /** Maximum size of the header section of a request, in bytes, 1,024 to 1,048,576. @default 16_384 */
  readonly maxHeaderBytes?: number | undefined
  /** Maximum number of open connections, at least 1. Node drops any further connections. @default 1_000 */
  readonly maxConnections?: number | undefined
}

export type Limits = { readonly [K in keyof ServerOptions]-?: number }

interface LimitDefinition {
  readonly defaultValue: number
  readonly min: number
  readonly max: number
}

/** The minimum is 1 because Node treats a timeout of 0 as no timeout. */
const timeoutLimit = (defaultValue: number): LimitDefinition => ({ defaultValue, min: 1, max: MAX_TIMER_MS })

export const LIMIT_DEFINITIONS: Readonly<Record<keyof Limits, LimitDefinition>> = {
  drainTimeoutMs: timeoutLimit(10_000),
  headersTimeoutMs: timeoutLimit(10_000),
  requestTimeoutMs: timeoutLimit(30_000),
  // Shorter than the drain timeout, so that idle connections close on their own during a drain.
  keepAliveTimeoutMs: timeoutLimit(5000),
  // If a client reads at 60 kB/s, the kernel accepts megabytes immediately, and then nothing for half a minute. That
  // isn't a stall.
  stallTimeoutMs: timeoutLimit(60_000),
  // With Node's default interval of 30 s, a late request would far outlive its timeout.
  checkIntervalMs: timeoutLimit(500),
  maxHeaderBytes: { defaultValue: 16_384, min: 1024, max: 2 ** 20 },
  // A list buffers up to 2 MiB, so 1,000 lists use 2 GiB, which is Node's default heap limit on a machine with 4 GiB.
  maxConnections: { defaultValue: 1000, min: 1, max: Number.MAX_SAFE_INTEGER },
}

export const DEFAULT_LIMITS = Object.fromEntries(
  Object.entries(LIMIT_DEFINITIONS).map(([name, { defaultValue }]) => [name, defaultValue]),
) as Limits
