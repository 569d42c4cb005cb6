import fc from 'fast-check'
import { LISTS, WRITES } from '../clients.ts'
import { befalls } from '../simulation.ts'

/** How long something takes: mostly less than a time-out, sometimes around one, sometimes far more. */
const ms = fc.oneof(
  { arbitrary: fc.nat(20), weight: 4 },
  { arbitrary: fc.constantFrom(70, 140, 280, 305, 480, 890, 990, 1010), weight: 3 },
  { arbitrary: fc.nat(1200), weight: 2 },
  { arbitrary: fc.nat(9000), weight: 1 },
)

interface Refusal {
  /** Whether the connection is of no use after it. */
  readonly breaks?: true
  /** Whether the statement may have been done. */
  readonly mayBeDone?: true
  /** Whether the code alone doesn't show that the statement wasn't done. */
  readonly isUnsure?: true
  /** Whether only a statement with a name is refused so. */
  readonly isForNames?: true
}

/** What a server says instead of a result. */
export const REFUSALS: Readonly<Record<string, Refusal>> = {
  '57014': {},
  '53100': {},
  '53200': {},
  '53300': {},
  '55006': {},
  '55P03': {},
  '58030': { isUnsure: true },
  '40001': {},
  '40P01': {},
  '08001': {},
  '22021': {},
  '42501': {},
  '42P01': {},
  '54000': {},
  '42P07': {},
  '57P03': { breaks: true },
  '25006': { breaks: true },
  '25P02': { breaks: true },
  '57P01': { breaks: true, mayBeDone: true },
  '08006': { breaks: true, mayBeDone: true },
  '25P04': { breaks: true, mayBeDone: true },
  '40003': { breaks: true, mayBeDone: true },
  '26000': { isForNames: true },
  '42P05': { isForNames: true },
  '0A000': { breaks: true, isForNames: true },
}

/** What a server can answer to all creates for a while, and retrying doesn't help with the last two. */
export const WRITE_FAILURES = ['53100', '58030', '54000', '42501'] as const

/** Those that come by chance; a server says the others by what it is asked. */
const CODES = Object.keys(REFUSALS).filter((code) => {
  return !['53100', '54000', '42501', '22021', '42P01', '42P07'].includes(code)
})

/** What befalls a statement. */
const fate = fc.oneof(
  fc.record({ kind: fc.constant('slow' as const), work: ms, back: ms }),
  fc.record({
    kind: fc.constant('refuse' as const),
    code: fc.constantFrom(...CODES),
    isDone: fc.boolean(),
    back: ms,
  }),
  // The connection breaks; the server may never know, and goes on.
  fc.record({ kind: fc.constant('break' as const), work: ms, back: ms }),
  // It waits for a lock until it is cancelled, or for that long.
  fc.record({ kind: fc.constant('lock' as const), work: ms, isDone: fc.boolean() }),
)
export type Fate = typeof fate extends fc.Arbitrary<infer T> ? T : never

/** What befalls a new connection, and one that asks whether the server is there. */
const arrival = fc.record({
  kind: fc.constantFrom('slow', 'refused', 'full', 'dies', 'mute'),
  ms,
})
export type Arrival = typeof arrival extends fc.Arbitrary<infer T> ? T : never

/** What befalls a cancellation. */
const cancellation = fc.record({
  kind: fc.constantFrom('slow', 'refused', 'reset', 'mute', 'unheard', 'late', 'ended', 'noTls'),
  ms,
})
export type Cancellation = typeof cancellation extends fc.Arbitrary<infer T> ? T : never

const SIZES = ['small', 'small', 'small', 'small', 'small', 'small', 'large', 'bad'] as const

const TROUBLES = [
  ...([
    'silence',
    'full',
    'full',
    'noStandby',
    'readOnly',
    'unfit',
    'searchPath',
    'failOver',
    'restart',
    'takePool',
    'cut',
  ] as const),
]

/** One program has most of the calls. */
const store = fc.constantFrom(0, 0, 0, 1)

const event = fc.oneof(
  { arbitrary: fc.record({ ...WRITES, size: fc.constantFrom(...SIZES), store }), weight: 6 },
  { arbitrary: fc.record({ ...LISTS, store }), weight: 3 },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom<('ping' | 'close' | 'migrate')[]>('ping', 'ping', 'ping', 'ping', 'close', 'migrate'),
      store,
    }),
    weight: 3,
  },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom(...TROUBLES),
      ms,
      number: fc.nat(3),
    }),
    weight: 1,
  },
)
export type Event = typeof event extends fc.Arbitrary<infer T> ? T : never

/** How long until the next event: mostly so little that calls meet. */
const pause = fc.oneof(
  { arbitrary: fc.constant(0), weight: 4 },
  { arbitrary: fc.nat(20), weight: 3 },
  { arbitrary: fc.nat(500), weight: 2 },
  { arbitrary: fc.nat(4000), weight: 1 },
)

/** Once in so many scenarios. */
const rarely = (times: number): fc.Arbitrary<boolean> => fc.nat(times - 1).map((number) => number === times - 1)

// Without a bias, which would make small what is to meet by chance.
export const scenarios = fc.noBias(
  fc.record({
    timeoutMs: fc.constantFrom(300, 1000, 2000),
    /** How long a statement takes that nothing befalls. */
    paceMs: fc.constantFrom(1, 10, 40),
    poolSize: fc.integer({ min: 1, max: 3 }),
    poolTimeoutMs: fc.constantFrom(0, 100, 1500),
    maxBatch: fc.integer({ min: 1, max: 6 }),
    maxInFlight: fc.integer({ min: 1, max: 2 }),
    preparedStatements: fc.boolean(),
    isForeign: rarely(3),
    hidesProcess: rarely(5),
    /** Whether sessions are set not to report a commit without its standby; never if other servers keep the plants. */
    hidesWarnings: rarely(3),
    ssl: rarely(3),
    lacksTable: rarely(5),
    /** Whether the server is silent for good in the end, and the stores are closed. */
    endsInSilence: rarely(5),
    events: fc.array(fc.tuple(pause, event), { maxLength: 40, size: 'max' }),
    fates: befalls(fate, 6, 5, 12),
    /** What befalls the question whether a connection is fit for use. */
    looks: befalls(fate, 6, 5, 3),
    arrivals: befalls(arrival, 6, 5, 4),
    cancellations: befalls(cancellation, 2, 5, 6),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
