import fc from 'fast-check'
import { LIST_FIELDS, WRITE_FIELDS } from '../clients.ts'
import { faultSequences } from '../simulation.ts'

/** Durations: mostly less than a timeout, sometimes around one, sometimes far more. */
const ms = fc.oneof(
  { arbitrary: fc.nat(20), weight: 4 },
  { arbitrary: fc.constantFrom(70, 140, 280, 305, 480, 890, 990, 1010), weight: 3 },
  { arbitrary: fc.nat(1200), weight: 2 },
  { arbitrary: fc.nat(9000), weight: 1 },
)

interface ServerError {
  /** Whether the connection is unusable after the error. */
  readonly breaksConnection?: true
  /** Whether the statement may have been applied. */
  readonly mayBeApplied?: true
  /** Whether the code alone doesn't prove that the statement wasn't applied. */
  readonly isAmbiguous?: true
  /** Whether only a named statement can cause this error. */
  readonly isForPreparedStatements?: true
}

/** The SQLSTATE codes of simulated errors. */
export const SERVER_ERRORS: Readonly<Record<string, ServerError>> = {
  '57014': {},
  '53100': {},
  '53200': {},
  '53300': {},
  '55006': {},
  '55P03': {},
  '58030': { isAmbiguous: true },
  '40001': {},
  '40P01': {},
  '08001': {},
  '22021': {},
  '42501': {},
  '42P01': {},
  '54000': {},
  '42P07': {},
  '57P03': { breaksConnection: true },
  '25006': { breaksConnection: true },
  '25P02': { breaksConnection: true },
  '57P01': { breaksConnection: true, mayBeApplied: true },
  '08006': { breaksConnection: true, mayBeApplied: true },
  '25P04': { breaksConnection: true, mayBeApplied: true },
  '40003': { breaksConnection: true, mayBeApplied: true },
  '26000': { isForPreparedStatements: true },
  '42P05': { isForPreparedStatements: true },
  '0A000': { breaksConnection: true, isForPreparedStatements: true },
}

/** Errors with which all creates may fail for a while. The last two are permanent. */
export const WRITE_FAILURES = ['53100', '58030', '54000', '42501'] as const

/** Errors that are injected at random. The others depend on the statement. */
const RANDOM_CODES = Object.keys(SERVER_ERRORS).filter((code) => {
  return !['53100', '54000', '42501', '22021', '42P01', '42P07'].includes(code)
})

/** A fault in a statement. */
const statementFault = fc.oneof(
  fc.record({ kind: fc.constant('slow' as const), work: ms, back: ms }),
  fc.record({
    kind: fc.constant('refuse' as const),
    code: fc.constantFrom(...RANDOM_CODES),
    isDone: fc.boolean(),
    back: ms,
  }),
  // The connection breaks. The server may not notice and continue.
  fc.record({ kind: fc.constant('break' as const), work: ms, back: ms }),
  // The statement waits for a lock, for `work` or until it is canceled.
  fc.record({ kind: fc.constant('lock' as const), work: ms, isDone: fc.boolean() }),
)
export type StatementFault = typeof statementFault extends fc.Arbitrary<infer T> ? T : never

/** A fault in a new connection. Also applies to connections that check whether the server is reachable. */
const connectFault = fc.record({
  kind: fc.constantFrom('slow', 'refused', 'full', 'dies', 'mute'),
  ms,
})
export type ConnectFault = typeof connectFault extends fc.Arbitrary<infer T> ? T : never

/** A fault in a cancellation. */
const cancelFault = fc.record({
  kind: fc.constantFrom('slow', 'refused', 'reset', 'mute', 'unheard', 'late', 'ended', 'noTls'),
  ms,
})
export type CancelFault = typeof cancelFault extends fc.Arbitrary<infer T> ? T : never

const SIZES = ['small', 'small', 'small', 'small', 'small', 'small', 'large', 'bad'] as const

const DISRUPTIONS = [
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

/** The first store gets most of the calls. */
const store = fc.constantFrom(0, 0, 0, 1)

const event = fc.oneof(
  { arbitrary: fc.record({ ...WRITE_FIELDS, size: fc.constantFrom(...SIZES), store }), weight: 6 },
  { arbitrary: fc.record({ ...LIST_FIELDS, store }), weight: 3 },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom<('ping' | 'close' | 'migrate')[]>('ping', 'ping', 'ping', 'ping', 'close', 'migrate'),
      store,
    }),
    weight: 3,
  },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom(...DISRUPTIONS),
      ms,
      number: fc.nat(3),
    }),
    weight: 1,
  },
)
export type Event = typeof event extends fc.Arbitrary<infer T> ? T : never

/** The pause before the next event, mostly short enough for calls to overlap. */
const pause = fc.oneof(
  { arbitrary: fc.constant(0), weight: 4 },
  { arbitrary: fc.nat(20), weight: 3 },
  { arbitrary: fc.nat(500), weight: 2 },
  { arbitrary: fc.nat(4000), weight: 1 },
)

/** Generates true in one of `times` scenarios. */
const oneIn = (times: number): fc.Arbitrary<boolean> => fc.nat(times - 1).map((number) => number === times - 1)

// fast-check's bias toward small values would make coincidences rare.
export const scenarios = fc.noBias(
  fc.record({
    timeoutMs: fc.constantFrom(300, 1000, 2000),
    /** How long a statement without a fault takes. */
    statementMs: fc.constantFrom(1, 10, 40),
    poolSize: fc.integer({ min: 1, max: 3 }),
    poolTimeoutMs: fc.constantFrom(0, 100, 1500),
    maxBatch: fc.integer({ min: 1, max: 6 }),
    maxInFlight: fc.integer({ min: 1, max: 2 }),
    preparedStatements: fc.boolean(),
    hasForeignTables: oneIn(3),
    hidesProcessId: oneIn(5),
    /** Whether sessions suppress the warning about an unconfirmed commit. No effect with hasForeignTables. */
    hidesWarnings: oneIn(3),
    ssl: oneIn(3),
    isTableMissing: oneIn(5),
    /** Whether the server stops responding forever at the end, and the stores are closed. */
    endsWithOutage: oneIn(5),
    events: fc.array(fc.tuple(pause, event), { maxLength: 40, size: 'max' }),
    statementFaults: faultSequences(statementFault, 6, 5, 12),
    /** Faults of the inspection of a connection. */
    inspectionFaults: faultSequences(statementFault, 6, 5, 3),
    connectFaults: faultSequences(connectFault, 6, 5, 4),
    cancelFaults: faultSequences(cancelFault, 2, 5, 6),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
