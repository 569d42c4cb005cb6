import fc from 'fast-check'
import { faultSequences } from '../simulation.ts'

/** Durations in milliseconds, both shorter and longer than an attempt's timeout. */
const ms = fc.oneof({ arbitrary: fc.nat(50), weight: 3 }, { arbitrary: fc.nat(3000), weight: 2 })

/** What the proxy does with a request. */
const fault = fc.record({
  kind: fc.constantFrom(
    ...([
      'cut',
      'cut',
      'cutWithin',
      'hang',
      'truncate',
      'page',
      'bad-gateway',
      'bad-gateway',
      'delay',
      'delay',
    ] as const),
    ...(['repeat', 'unavailable', 'unknown', 'unknown', 'failed', 'limited', 'redirect', 'rejected'] as const),
  ),
  /** Whether the service gets the request. */
  isForwarded: fc.boolean(),
  /** The delays of the request and the response. */
  requestMs: fc.oneof({ arbitrary: fc.constant(0), weight: 2 }, { arbitrary: ms, weight: 1 }),
  responseMs: fc.oneof({ arbitrary: fc.constant(0), weight: 2 }, { arbitrary: ms, weight: 1 }),
  retryAfter: fc.constantFrom(undefined, undefined, '0', '2', '100', 'soon'),
})
export type Fault = typeof fault extends fc.Arbitrary<infer T> ? T : never

const id = fc.nat(4).map(BigInt)
const event = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constantFrom('create', 'create', 'delete'),
      id,
      name: fc.constantFrom('Fern', '{"id":1}'),
      tag: fc.constantFrom(undefined, 'indoor'),
    }),
    weight: 6,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant('list' as const),
      after: fc.option(id, { nil: undefined }),
      limit: fc.constantFrom(undefined, undefined, 0, 1, 3),
    }),
    weight: 3,
  },
  // Another client creates or deletes a plant, without any faults.
  { arbitrary: fc.record({ kind: fc.constant('other' as const), id }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant('abort' as const), index: fc.nat(20) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('rotate' as const) }), weight: 1 },
)
export type Event = typeof event extends fc.Arbitrary<infer T> ? T : never

const pause = fc.oneof(
  { arbitrary: fc.constant(0), weight: 2 },
  { arbitrary: fc.nat(500), weight: 3 },
  { arbitrary: fc.nat(5000), weight: 2 },
)

// Disable fast-check's bias towards small values, which would make coincidences rare.
export const scenarios = fc.noBias(
  fc.record({
    retries: fc.constantFrom(0, 1, 4),
    timeoutMs: fc.constantFrom(1000, 20_000),
    /** The `maxLimit` of the service. Small values give most lists several pages. */
    maxLimit: fc.constantFrom(1, 2, 1000),
    /** How many plants exist initially. */
    plantCount: fc.nat(6),
    events: fc.array(fc.tuple(pause, event), { maxLength: 14, size: 'max' }),
    faults: faultSequences(fault, 3, 3, 12),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
