import type { Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import type { Call } from '../reference-model.ts'
import type { Pool } from './pool.ts'
import type { TrackedQuery } from './cluster.ts'

/** How often a statement is sent that loses conflicts. */
const MAX_ATTEMPTS = 5

/** How long what a ping has tried holds. */
const TRUST_MS = 900

/** Errors that retrying doesn't help with. */
export const PERMANENT_ERRORS: ReadonlySet<string | undefined> = new Set(['42P01', '42501', '54000'])

const KINDS = ['create', 'delete'] as const
type Kind = (typeof KINDS)[number]

/** Sees that a store sends neither more nor less than it should. */
export class TrafficChecker {
  readonly #pool: Pool
  /** When a write of each kind may have failed so that pings try one, and which kinds surely have. */
  readonly #failedAt = { create: -Infinity, delete: -Infinity }
  readonly #failedKinds = new Set<Kind>()
  readonly #succeededAt = { create: 0, delete: 0 }
  /** When a ping last was to try a write, perhaps, and when one did. */
  #mayProbeAt = -Infinity
  #probedAt = -Infinity
  /** How many writes pings may still try. */
  #allowedProbes = 0
  #warningCount = 0
  /** What was answered last, and how. */
  #lastResponse: { readonly trackedQuery: TrackedQuery; readonly response: QueryResult | Error } | undefined

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Returns what sees, once the store says that it is ready, that it has tried a write if it had to. */
  onPing(): () => void {
    const { world } = this.#pool
    const { now } = world.time
    const hasFailed = KINDS.some((kind) => this.#failedAt[kind] >= this.#succeededAt[kind])
    if (!hasFailed || now - this.#mayProbeAt < TRUST_MS) return () => undefined
    this.#mayProbeAt = now
    this.#allowedProbes++
    const mustProbe = this.#failedKinds.size > 0 && now - this.#probedAt >= TRUST_MS
    return () => world.check(!mustProbe || this.#probedAt >= now, 'a ping tries a write after one has failed')
  }

  /** Whether a ping may wait for a write that it, or one before it, has tried. */
  get mayProbe(): boolean {
    return this.#mayProbeAt !== -Infinity
  }

  onWarning(): void {
    const { world, hasRejectedName: hasRefusedName } = this.#pool
    world.check(++this.#warningCount === 1 && hasRefusedName, 'names are given up once, and not before')
  }

  onQuery(trackedQuery: TrackedQuery): void {
    const { world, scenario, sessions } = this.#pool
    const { writes } = trackedQuery
    if (isProbeWrite(trackedQuery.query)) {
      world.check(this.#allowedProbes-- > 0, 'a ping tries a write only after one has failed, and not too often')
      this.#probedAt = world.time.now
    }
    if (writes.length === 0) return
    world.check(writes.length <= scenario.maxBatch, 'no group is too large')
    const isCreate = (calls: readonly Call[]): boolean => calls[0]?.name !== undefined
    const inFlight = [...sessions].filter(({ isCheckedOut: isLent, isTimedOut: isLate, statement }) => {
      const otherWrites = statement?.trackedQuery.writes ?? []
      return isLent && !isLate && otherWrites.length > 0 && isCreate(otherWrites) === isCreate(writes)
    })
    world.check(inFlight.length < scenario.maxInFlight, 'no more groups are in flight than may be')
    for (const call of writes) {
      world.check(countConflicts(call) < MAX_ATTEMPTS, 'no statement is sent for ever that loses:', call.number)
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
    world.check(
      code !== '22021' && !PERMANENT_ERRORS.has(code),
      'an error that does not pass is told as it is:',
      number,
    )
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
      'a statement that loses is sent again:',
      number,
    )
  }

  #markSucceeded(kind: Kind): void {
    this.#succeededAt[kind] = this.#pool.world.time.now
    this.#failedKinds.delete(kind)
  }
}

const getCode = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

/** Whether it is what a ping tries. */
export const isProbeWrite = ({ text }: Query): boolean => text.includes('repeat(')

/** How many statements of a call have lost conflicts, one after the other. */
function countConflicts({ statements }: Call): number {
  return statements.length - 1 - statements.findLastIndex(({ isConflict }) => !isConflict)
}
