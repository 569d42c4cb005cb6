import fc from 'fast-check'
import { faultSequences } from '../simulation.ts'
import { CLOSING_NAMES, KEEP_ALIVE_NAMES } from './requests.ts'

const FAULT_KINDS = [
  'work',
  'work',
  'late',
  'late',
  'late',
  'late',
  'late',
  'never',
  'unavailable',
  'unknown',
  'fault',
] as const

/** A fault in a store call or a token lookup. */
const fault = fc.record({
  kind: fc.constantFrom(...FAULT_KINDS),
  ms: fc.oneof(fc.nat(3), fc.nat(60), fc.nat(300)),
  isDone: fc.boolean(),
})
export type Fault = typeof fault extends fc.Arbitrary<infer T> ? T : never

const keepAliveKind = fc
  .constantFrom(...KEEP_ALIVE_NAMES, 'create', 'create', 'list', 'options', 'delete')
  .filter((kind) => kind !== 'long')
const closingKind = fc.constantFrom(...CLOSING_NAMES, 'long')

/** Requests that a client sends in one piece or in two. */
const action = fc.record({
  ms: fc.oneof(fc.nat(5), fc.nat(100), fc.nat(1300)),
  /** Whether the client first waits for all responses. */
  waitsForResponses: fc.boolean(),
  kinds: fc.array(fc.oneof({ arbitrary: keepAliveKind, weight: 30 }, closingKind), { minLength: 1, maxLength: 4 }),
  repeatCount: fc.oneof(
    { arbitrary: fc.constant(1), weight: 40 },
    { arbitrary: fc.integer({ min: 2, max: 5 }), weight: 8 },
    { arbitrary: fc.integer({ min: 10, max: 40 }), weight: 1 },
  ),
  splitAt: fc.option(fc.nat(9999), { nil: undefined, freq: 1 }),
  /** When the second piece follows; undefined if never. */
  splitDelayMs: fc.oneof(
    { arbitrary: fc.nat(60), weight: 5 },
    { arbitrary: fc.nat(700), weight: 2 },
    { arbitrary: fc.constant(undefined), weight: 1 },
  ),
})
export type Action = typeof action extends fc.Arbitrary<infer T> ? T : never

const plan = fc.record({
  ms: fc.oneof(fc.nat(300), fc.nat(2500)),
  actions: fc.array(action, { maxLength: 5 }),
  /** A closing request to send at the end. */
  last: fc.option(fc.constantFrom(...CLOSING_NAMES), { nil: undefined, freq: 2 }),
  /** The interval of reads: 0 to read immediately, Infinity to never read. */
  readMs: fc.constantFrom(0, 0, 0, 0, 7, 60, 150, 400, Infinity),
  end: fc.constantFrom<('stay' | 'end' | 'leave' | 'reset')[]>('stay', 'end', 'end', 'end', 'leave', 'reset'),
  endMs: fc.oneof(fc.constant(0), fc.nat(3), fc.nat(400)),
  /** How long the client keeps its side open after the server has ended its own. */
  lingerMs: fc.constantFrom(0, 0, 5, 60_000),
})
export type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

/** Creates clients that each pipeline many requests and then disconnect. */
export function createFloods(counts: readonly number[]): Plan[] {
  return counts.map((repeatCount, index) => ({
    ms: 50 * index,
    actions: [
      { ms: 0, waitsForResponses: false, kinds: ['options'], repeatCount, splitAt: undefined, splitDelayMs: 0 },
    ],
    last: undefined,
    readMs: 0,
    end: 'reset',
    endMs: 0,
    lingerMs: 0,
  }))
}

export const scenarios = fc.noBias(
  fc.record({
    drainTimeoutMs: fc.constantFrom(300, 1111),
    drainMs: fc.option(fc.nat(2500), { nil: undefined }),
    isPortShared: fc.boolean(),
    /** More than 100 requests at the same time activate the guard. */
    floods: fc.constantFrom([], [], [], [], [120], [60, 60]),
    /**
     * When and for how long the process is suspended. The second time is relative to the moment when a drain stops
     * listening.
     */
    stops: fc.array(fc.tuple(fc.nat(1500), fc.integer({ min: 100, max: 500 })), { maxLength: 2 }),
    plans: fc.array(plan, { minLength: 1, maxLength: 6, size: 'max' }),
    faults: faultSequences(fault, 8, 3, 8),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
