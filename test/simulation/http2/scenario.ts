import fc from 'fast-check'

/** Long enough for `node:http2` to process everything that one step causes before the next step begins. */
export const STEP_MS = 500

/**
 * Generates a time within a step. Timeouts fire and calls settle only at the start of a step, so the order of all
 * events is deterministic.
 */
const withinStep = (fraction: number, maxMs: number): fc.Arbitrary<number> =>
  fc.nat(maxMs / STEP_MS).map((steps) => (steps + fraction) * STEP_MS)
const bodyTime = (maxMs: number): fc.Arbitrary<number> => withinStep(1 / 2, maxMs)
const aroundTimeout = bodyTime(4000).map((ms) => ms + 29_000)
const disconnectTime = (maxMs: number): fc.Arbitrary<number> => withinStep(3 / 4, maxMs)

const request = fc.record({
  startSteps: fc.nat(4),
  kind: fc.constantFrom('create', 'create', 'create', 'delete', 'list', 'refused'),
  /** By how much the content-length exceeds the length of the body; undefined if there is no content-length. */
  surplus: fc.constantFrom(undefined, undefined, 0, 0, 1, -1),
  /** When each piece of the body is sent, after the header. The rest of the body is sent at its end. */
  pieces: fc.array(bodyTime(40_000), { maxLength: 3 }),
  end: fc.constantFrom('complete', 'complete', 'complete', 'no END_STREAM', 'nothing', 'reset'),
  endMs: fc.oneof(bodyTime(1000), bodyTime(1000), bodyTime(28_000), aroundTimeout),
})
export type RequestPlan = typeof request extends fc.Arbitrary<infer T> ? T : never

/** On Node 24 a body that is longer than its content-length ends its connection, and on Node 20 only its stream. */
function withoutExcess(requests: readonly RequestPlan[]): readonly RequestPlan[] {
  if (requests.length === 1) return requests
  return requests.map((plan) => ({ ...plan, surplus: plan.surplus === -1 ? 1 : plan.surplus }))
}

const connection = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 4 }).map(withoutExcess),
  /** Whether the client reads the bodies of its responses. */
  reads: fc.constantFrom(true, true, true, false),
  loss: fc.constantFrom('none', 'none', 'none', 'FIN', 'destroy'),
  lossMs: fc.oneof(disconnectTime(2000), disconnectTime(40_000)),
})
export type ConnectionPlan = typeof connection extends fc.Arbitrary<infer T> ? T : never

export const scenarios = fc.noBias(
  fc.record({
    connections: fc.array(connection, { minLength: 1, maxLength: 2 }),
    /** How long `authenticate` and the store calls take. */
    tokenSteps: fc.constantFrom(0, 0, 1),
    storeSteps: fc.constantFrom(0, 0, 1),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
