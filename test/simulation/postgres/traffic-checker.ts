import type { QueryResult } from '../../../src/stores/postgres/pool.ts'
import type { Call } from '../reference-model.ts'
import type { Simulation } from '../simulation.ts'
import type { Scenario } from './scenario.ts'
import type { Session } from './session.ts'
import { isProbeWrite, type TrackedQuery } from './tracked-query.ts'

/** The maximum number of times that a statement is sent if it fails with conflicts. */
const MAX_ATTEMPTS = 5

/** How long the result of a ping's probe remains valid. */
const TRUST_MS = 900

/** Errors that persist if the statement is retried. */
export const PERMANENT_ERRORS: ReadonlySet<string | undefined> = new Set(['42P01', '42501', '54000'])

const KINDS = ['create', 'delete'] as const
type Kind = (typeof KINDS)[number]

/** What the checker needs from the store's pool. */
interface CheckedPool {
  readonly world: Simulation
  readonly scenario: Scenario
  readonly sessions: ReadonlySet<Session>
  readonly hasRejectedName: boolean
}

/** Checks that a store sends neither too many statements nor too few. */
export class TrafficChecker {
  readonly #pool: CheckedPool
  /** When a write of each kind may have failed in a way that makes pings probe. */
  readonly #failedAt = { create: -Infinity, delete: -Infinity }
  /** The kinds of writes that certainly failed. */
  readonly #failedKinds = new Set<Kind>()
  readonly #succeededAt = { create: 0, delete: 0 }
  /** When a ping was last allowed to probe. */
  #mayProbeAt = -Infinity
  /** When a ping last probed. */
  #probedAt = -Infinity
  /** How many more probes are allowed. */
  #allowedProbes = 0
  #warningCount = 0
  /** The last query with a response, and the response. */
  #lastResponse: { readonly trackedQuery: TrackedQuery; readonly response: QueryResult | Error } | undefined

  constructor(pool: CheckedPool) {
    this.#pool = pool
  }

  /** Returns a function to call when the ping succeeds: it checks that the ping has probed if it had to. */
  onPing(): () => void {
    const { world } = this.#pool
    const { now } = world.time
    const hasFailed = KINDS.some((kind) => this.#failedAt[kind] >= this.#succeededAt[kind])
    if (!hasFailed || now - this.#mayProbeAt < TRUST_MS) return () => undefined
    this.#mayProbeAt = now
    this.#allowedProbes++
    const mustProbe = this.#failedKinds.size > 0 && now - this.#probedAt >= TRUST_MS
    return () => world.check(!mustProbe || this.#probedAt >= now, 'a ping probes after a write has failed')
  }

  /** Whether a ping may be waiting for the probe of this or an earlier ping. */
  get mayProbe(): boolean {
    return this.#mayProbeAt !== -Infinity
  }

  onWarning(): void {
    const { world, hasRejectedName } = this.#pool
    world.check(
      ++this.#warningCount === 1 && hasRejectedName,
      'the store warns once, after a pooler has lost a statement name',
    )
  }

  onQuery(trackedQuery: TrackedQuery): void {
    const { world, scenario, sessions } = this.#pool
    const { writes } = trackedQuery
    if (isProbeWrite(trackedQuery.query)) {
      world.check(this.#allowedProbes-- > 0, 'a ping probes only after a write has failed, and not too often')
      this.#probedAt = world.time.now
    }
    if (writes.length === 0) return
    world.check(writes.length <= scenario.maxBatch, 'no batch is too large')
    const isCreate = (calls: readonly Call[]): boolean => calls[0]?.name !== undefined
    const inFlight = [...sessions].filter(({ isCheckedOut, isTimedOut, statement }) => {
      const otherWrites = statement?.trackedQuery.writes ?? []
      return isCheckedOut && !isTimedOut && otherWrites.length > 0 && isCreate(otherWrites) === isCreate(writes)
    })
    world.check(inFlight.length < scenario.maxInFlight, 'at most maxInFlight batches are in flight')
    for (const call of writes) {
      world.check(
        countConflicts(call) < MAX_ATTEMPTS,
        'a statement with conflicts is not retried forever:',
        call.number,
      )
    }
  }

  onResponse(trackedQuery: TrackedQuery, response: QueryResult | Error): void {
    this.#lastResponse = { trackedQuery, response }
    if (!isProbeWrite(trackedQuery.query)) return
    const code = getCode(response)
    if (!(response instanceof Error)) for (const kind of KINDS) this.#markSucceeded(kind)
    else if (code?.startsWith('40') === true) this.#allowedProbes++
  }

  onCallEnd(call: Call, error: unknown): void {
    const { world } = this.#pool
    const { kind, outcome, number } = call
    const { cause } = (error ?? {}) as Partial<Error>
    const code = getCode(cause)
    world.check(code !== '22021' && !PERMANENT_ERRORS.has(code), 'a permanent error is not wrapped:', number)
    if (kind === 'list') return
    if (outcome === 'true') this.#markSucceeded(kind)
    const isPlantError = getCode(error) === '22021'
    if (outcome === 'true' || outcome === 'false' || isPlantError) return
    this.#failedAt[kind] = world.time.now
    const response = outcome === 'refused' ? error : cause
    if (this.#lastResponse?.trackedQuery.writes.includes(call) !== true || this.#lastResponse.response !== response)
      return
    this.#failedKinds.add(kind)
    const isConflictError = code === '40001' || code === '40P01'
    world.check(
      !isConflictError || countConflicts(call) === MAX_ATTEMPTS,
      'a statement with a conflict is retried:',
      number,
    )
  }

  #markSucceeded(kind: Kind): void {
    this.#succeededAt[kind] = this.#pool.world.time.now
    this.#failedKinds.delete(kind)
  }
}

const getCode = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

/** Returns the length of the current series of conflicts of a call. */
function countConflicts({ statements }: Call): number {
  return statements.length - 1 - statements.findLastIndex(({ isConflict }) => !isConflict)
}
