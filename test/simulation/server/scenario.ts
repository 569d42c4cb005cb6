import fc from 'fast-check'
import { befalls } from '../simulation.ts'
import { CLOSING, MOST } from './requests.ts'

const FATES = [
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

/** What befalls a call of the store, or a token that is looked up. */
const fate = fc.record({
  kind: fc.constantFrom(...FATES),
  ms: fc.oneof(fc.nat(3), fc.nat(60), fc.nat(300)),
  isDone: fc.boolean(),
})
export type Fate = typeof fate extends fc.Arbitrary<infer T> ? T : never

const most = fc.constantFrom(...MOST, 'create', 'create', 'list', 'options', 'delete').filter((kind) => kind !== 'long')
const closing = fc.constantFrom(...CLOSING, 'long')

/** What a client sends at once, or in two pieces. */
const act = fc.record({
  ms: fc.oneof(fc.nat(5), fc.nat(100), fc.nat(1300)),
  /** Whether it waits for its answers first. */
  waits: fc.boolean(),
  kinds: fc.array(fc.oneof({ arbitrary: most, weight: 30 }, closing), { minLength: 1, maxLength: 4 }),
  times: fc.oneof(
    { arbitrary: fc.constant(1), weight: 40 },
    { arbitrary: fc.integer({ min: 2, max: 5 }), weight: 8 },
    { arbitrary: fc.integer({ min: 10, max: 40 }), weight: 1 },
  ),
  cut: fc.option(fc.nat(9999), { nil: undefined, freq: 1 }),
  /** When the second piece follows; it may not. */
  cutMs: fc.oneof(
    { arbitrary: fc.nat(60), weight: 5 },
    { arbitrary: fc.nat(700), weight: 2 },
    { arbitrary: fc.constant(undefined), weight: 1 },
  ),
})
export type Act = typeof act extends fc.Arbitrary<infer T> ? T : never

const plan = fc.record({
  ms: fc.oneof(fc.nat(300), fc.nat(2500)),
  acts: fc.array(act, { maxLength: 5 }),
  /** What it sends last of all. */
  last: fc.option(fc.constantFrom(...CLOSING), { nil: undefined, freq: 2 }),
  /** How it reads: at once, every so many milliseconds, or not at all. */
  readMs: fc.constantFrom(0, 0, 0, 0, 7, 60, 150, 400, Infinity),
  end: fc.constantFrom<('stay' | 'end' | 'leave' | 'reset')[]>('stay', 'end', 'end', 'end', 'leave', 'reset'),
  endMs: fc.oneof(fc.constant(0), fc.nat(3), fc.nat(400)),
  /** How long it keeps its side open when the server has ended its own. */
  lingerMs: fc.constantFrom(0, 0, 5, 60_000),
})
export type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

/** Clients that send so many requests each, and go. */
export function floodsOf(counts: readonly number[]): Plan[] {
  return counts.map((times, index) => ({
    ms: 50 * index,
    acts: [{ ms: 0, waits: false, kinds: ['options'], times, cut: undefined, cutMs: 0 }],
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
    isShared: fc.boolean(),
    /** More than a hundred at once wake the guard. */
    floods: fc.constantFrom([], [], [], [], [120], [60, 60]),
    /** When the process is stopped, and for how long; the second time when a drain has just stopped to listen. */
    stops: fc.array(fc.tuple(fc.nat(1500), fc.integer({ min: 100, max: 500 })), { maxLength: 2 }),
    plans: fc.array(plan, { minLength: 1, maxLength: 6, size: 'max' }),
    fates: befalls(fate, 8, 3, 8),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
