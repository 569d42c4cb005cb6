import fc from 'fast-check'
import { LIST_FIELDS, WRITE_FIELDS } from '../clients.ts'
import { faultSequences } from '../simulation.ts'

/** A fault in a SQLite operation: BEGIN, a statement, COMMIT or ROLLBACK. */
const fault = fc.record({
  kind: fc.constantFrom('slow', 'busy', 'io', 'full', 'memory', 'corrupt', 'end'),
  ms: fc.oneof(fc.nat(20), fc.nat(1200)),
  /** What a failed commit leaves: nothing, all changes, or changes in the WAL that only the next process applies. */
  leftover: fc.constantFrom('nothing', 'all', 'log'),
  /** Whether SQLite itself has rolled the transaction back. */
  rollsBack: fc.boolean(),
})
export type Fault = typeof fault extends fc.Arbitrary<infer T> ? T : never

const SIZES = ['small', 'small', 'small', 'small', 'large', 'bad'] as const

const pause = fc.oneof(
  { arbitrary: fc.constant(0), weight: 5 },
  { arbitrary: fc.nat(100), weight: 3 },
  { arbitrary: fc.nat(600), weight: 2 },
  { arbitrary: fc.nat(2000), weight: 1 },
)

const event = fc.oneof(
  { arbitrary: fc.record({ ...WRITE_FIELDS, size: fc.constantFrom(...SIZES) }), weight: 6 },
  { arbitrary: fc.record(LIST_FIELDS), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant('ping' as const) }), weight: 4 },
  {
    // `other` is a write by a second process.
    arbitrary: fc.record({
      kind: fc.constantFrom('lock', 'lockAll', 'away', 'full', 'end', 'other'),
      ms: fc.oneof(fc.nat(200), fc.nat(3000)),
      number: fc.nat(5),
    }),
    weight: 2,
  },
)
export type Event = typeof event extends fc.Arbitrary<infer T> ? T : never

// fast-check's bias toward small values would make coincidences rare.
export const scenarios = fc.noBias(
  fc.record({
    busyTimeoutMs: fc.constantFrom(0, 100, 1500),
    maxBatch: fc.integer({ min: 1, max: 6 }),
    /** On Deno, an iterator ends when its query fails, as if there were no more rows. */
    driver: fc.constantFrom('node', 'node', 'deno'),
    events: fc.array(fc.tuple(pause, event), { maxLength: 40, size: 'max' }),
    faults: faultSequences(fault, 12, 4, 12),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
