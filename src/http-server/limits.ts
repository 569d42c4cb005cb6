import { MAX_TIMER_MS } from '../option-checks.ts'

/** What a host may set. Every option has a default. */
export interface ServerOptions {
  /** How long the header of a request may take to arrive, in milliseconds, at least 1. @default 10_000 */
  readonly headersTimeoutMs?: number | undefined
  /** How long a whole request may take to arrive, in milliseconds, at least 1. @default 30_000 */
  readonly requestTimeoutMs?: number | undefined
  /**
   * How long a client is told that it may use an idle connection, in milliseconds, at least 1. Node closes it 1 s later,
   * so that a request that was just sent still finds it open.
   * @default 5_000
   */
  readonly keepAliveTimeoutMs?: number | undefined
  /** How long a client may take nothing of its response, in milliseconds, at least 1. @default 60_000 */
  readonly stallTimeoutMs?: number | undefined
  /** How often the server looks for requests that are late, in milliseconds, at least 1. @default 500 */
  readonly checkIntervalMs?: number | undefined
  /** How long a drain may take, in milliseconds, at least 1. @default 10_000 */
  readonly drainTimeoutMs?: number | undefined
  /** The most bytes that the header of a request may have, 1,024 to 1,048,576. @default 16_384 */
  readonly maxHeaderBytes?: number | undefined
  /** The most connections at a time, at least 1. @default 1_000 */
  readonly maxConnections?: number | undefined
}

export type Limits = { readonly [K in keyof ServerOptions]-?: number }

interface LimitDefinition {
  readonly defaultValue: number
  readonly min: number
  readonly max: number
}

/** Zero would switch a time-out off. */
const timeLimit = (defaultValue: number): LimitDefinition => ({ defaultValue, min: 1, max: MAX_TIMER_MS })

export const LIMIT_DEFINITIONS: Readonly<Record<keyof Limits, LimitDefinition>> = {
  drainTimeoutMs: timeLimit(10_000),
  headersTimeoutMs: timeLimit(10_000),
  requestTimeoutMs: timeLimit(30_000),
  // Shorter than a drain, so that idle connections close first.
  keepAliveTimeoutMs: timeLimit(5000),
  // The kernel takes megabytes at a time, and then nothing for half a minute for a client that reads 60 kB a second.
  stallTimeoutMs: timeLimit(60_000),
  // With Node's default of 30 s a late request would live far beyond its time-out.
  checkIntervalMs: timeLimit(500),
  maxHeaderBytes: { defaultValue: 16_384, min: 1024, max: 2 ** 20 },
  // Each may take a list of 2 MiB: 2 GiB in all, which Node has on a machine of 4 GiB.
  maxConnections: { defaultValue: 1000, min: 1, max: Number.MAX_SAFE_INTEGER },
}

export const DEFAULT_LIMITS = Object.fromEntries(
  Object.entries(LIMIT_DEFINITIONS).map(([name, { defaultValue }]) => [name, defaultValue]),
) as Limits
