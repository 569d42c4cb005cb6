import { STEP_MS, type ConnectionPlan, type RequestPlan, type Scenario } from './scenario.ts'

const BODY_TIMEOUT_MS = 30_000

/** What must become of a request. */
export interface Expected {
  /** The status that the client receives; undefined if it receives none. */
  readonly status: number | undefined
  /** Whether the plant is created or deleted. */
  readonly isDone: boolean
}

const NO_TRACE: Expected = { status: undefined, isDone: false }

/** Predicts what becomes of a request. All times count from its header. */
export function predict(
  { startSteps, kind, surplus = 0, end, endMs }: RequestPlan,
  { loss, lossMs }: ConnectionPlan,
  { tokenSteps, storeSteps }: Scenario,
): Expected {
  const lostAt = loss === 'none' ? Infinity : lossMs - startSteps * STEP_MS
  if (lostAt < 0) return NO_TRACE
  // A body that is longer than its content-length is an error too (RFC 9113 section 8.1.1).
  const isReset = end === 'reset' || (end === 'complete' && surplus !== 0) || (end === 'no END_STREAM' && surplus < 0)
  const goneAt = Math.min(lostAt, isReset ? endMs : Infinity)
  const readAt = tokenSteps * STEP_MS
  const storeMs = storeSteps * STEP_MS

  if (kind === 'refused') return { status: goneAt > readAt ? 401 : undefined, isDone: false }
  if (kind === 'list') return { status: goneAt > readAt + storeMs ? 200 : undefined, isDone: false }
  const deadline = readAt + BODY_TIMEOUT_MS
  const completeAt = end === 'complete' && !isReset ? endMs : Infinity
  if (completeAt < deadline) {
    const startedAt = Math.max(completeAt, readAt)
    // Without its client, a write goes on once it has started.
    if (lostAt < startedAt) return NO_TRACE
    const status = kind === 'create' ? 200 : 204
    return { status: lostAt > startedAt + storeMs ? status : undefined, isDone: true }
  }
  return goneAt < deadline ? NO_TRACE : { status: 408, isDone: false }
}
