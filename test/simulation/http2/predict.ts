import { STEP_MS, type ConnectionPlan, type RequestPlan, type Scenario } from './scenario.ts'

const BODY_TIMEOUT_MS = 30_000

/** The expected outcome of a request. */
export interface ExpectedOutcome {
  /** The status that the client receives; undefined if it receives none. */
  readonly status: number | undefined
  /** Whether the plant is created or deleted. */
  readonly isApplied: boolean
}

const NO_EFFECT: ExpectedOutcome = { status: undefined, isApplied: false }

/** Predicts the outcome of a request. All times are relative to its header. */
export function predict(
  { startSteps, kind, surplus = 0, end, endMs }: RequestPlan,
  { loss, lossMs }: ConnectionPlan,
  { tokenSteps, storeSteps }: Scenario,
): ExpectedOutcome {
  const disconnectedAt = loss === 'none' ? Infinity : lossMs - startSteps * STEP_MS
  if (disconnectedAt < 0) return NO_EFFECT
  // A body that is longer than its content-length is also an error (RFC 9113 section 8.1.1).
  const isReset = end === 'reset' || (end === 'complete' && surplus !== 0) || (end === 'no END_STREAM' && surplus < 0)
  const closedAt = Math.min(disconnectedAt, isReset ? endMs : Infinity)
  const authenticatedAt = tokenSteps * STEP_MS
  const storeMs = storeSteps * STEP_MS

  if (kind === 'refused') return { status: closedAt > authenticatedAt ? 401 : undefined, isApplied: false }
  if (kind === 'list') return { status: closedAt > authenticatedAt + storeMs ? 200 : undefined, isApplied: false }
  const deadline = authenticatedAt + BODY_TIMEOUT_MS
  const completeAt = end === 'complete' && !isReset ? endMs : Infinity
  if (completeAt < deadline) {
    const startedAt = Math.max(completeAt, authenticatedAt)
    // A write that has started continues after its client has disconnected.
    if (disconnectedAt < startedAt) return NO_EFFECT
    const status = kind === 'create' ? 200 : 204
    return { status: disconnectedAt > startedAt + storeMs ? status : undefined, isApplied: true }
  }
  return closedAt < deadline ? NO_EFFECT : { status: 408, isApplied: false }
}
