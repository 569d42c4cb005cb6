import type { Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import type { Call } from '../truth.ts'
import type { Pool } from './pool.ts'
import type { Asked } from './server.ts'

/** How often a statement is sent that loses conflicts. */
const MAX_ATTEMPTS = 5

/** How long what a ping has tried holds. */
const TRUST_MS = 900

/** Errors that retrying doesn't help with. */
export const LASTING: ReadonlySet<string | undefined> = new Set(['42P01', '42501', '54000'])

const KINDS = ['create', 'delete'] as const
type Kind = (typeof KINDS)[number]

/** Sees that a store sends neither more nor less than it should. */
export class Thrift {
  readonly #pool: Pool
  /** When a write of each kind may have failed so that pings try one, and which kinds surely have. */
  readonly #failedAt = { create: -Infinity, delete: -Infinity }
  readonly #failed = new Set<Kind>()
  readonly #succeededAt = { create: 0, delete: 0 }
  /** When a ping last was to try a write, perhaps, and when one did. */
  #mayTryAt = -Infinity
  #triedAt = -Infinity
  /** How many writes pings may still try. */
  #tries = 0
  #warnings = 0
  /** What was answered last, and how. */
  #latest: { readonly asked: Asked; readonly answer: QueryResult | Error } | undefined

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Returns what sees, once the store says that it is ready, that it has tried a write if it had to. */
  pinged(): () => void {
    const { world } = this.#pool
    const { now } = world.time
    const hasFailed = KINDS.some((kind) => this.#failedAt[kind] >= this.#succeededAt[kind])
    if (!hasFailed || now - this.#mayTryAt < TRUST_MS) return () => undefined
    this.#mayTryAt = now
    this.#tries++
    const mustTry = this.#failed.size > 0 && now - this.#triedAt >= TRUST_MS
    return () => world.expect(!mustTry || this.#triedAt >= now, 'a ping tries a write after one has failed')
  }

  /** Whether a ping may wait for a write that it, or one before it, has tried. */
  get mayTry(): boolean {
    return this.#mayTryAt !== -Infinity
  }

  warned(): void {
    const { world, hasRefusedName } = this.#pool
    world.expect(++this.#warnings === 1 && hasRefusedName, 'names are given up once, and not before')
  }

  asked(asked: Asked): void {
    const { world, scenario, sessions } = this.#pool
    const { writes } = asked
    if (isTry(asked.query)) {
      world.expect(this.#tries-- > 0, 'a ping tries a write only after one has failed, and not too often')
      this.#triedAt = world.time.now
    }
    if (writes.length === 0) return
    world.expect(writes.length <= scenario.maxBatch, 'no group is too large')
    const isCreate = (calls: readonly Call[]): boolean => calls[0]?.name !== undefined
    const inFlight = [...sessions].filter(({ isLent, isLate, statement }) => {
      const others = statement?.asked.writes ?? []
      return isLent && !isLate && others.length > 0 && isCreate(others) === isCreate(writes)
    })
    world.expect(inFlight.length < scenario.maxInFlight, 'no more groups are in flight than may be')
    for (const call of writes) {
      world.expect(conflicts(call) < MAX_ATTEMPTS, 'no statement is sent for ever that loses:', call.number)
    }
  }

  heard(asked: Asked, answer: QueryResult | Error): void {
    this.#latest = { asked, answer }
    if (!isTry(asked.query)) return
    const code = codeOf(answer)
    if (!(answer instanceof Error)) for (const kind of KINDS) this.#succeed(kind)
    else if (code?.startsWith('40') === true) this.#tries++
  }

  ended(call: Call, error: unknown): void {
    const { world } = this.#pool
    const { kind, outcome, number } = call
    const { cause } = (error ?? {}) as Partial<Error>
    const code = codeOf(cause)
    world.expect(code !== '22021' && !LASTING.has(code), 'an error that does not pass is told as it is:', number)
    if (kind === 'list') return
    if (outcome === 'true') this.#succeed(kind)
    const isOfPlant = codeOf(error) === '22021'
    if (outcome === 'true' || outcome === 'false' || isOfPlant) return
    this.#failedAt[kind] = world.time.now
    const answer = outcome === 'refused' ? error : cause
    if (this.#latest?.asked.writes.includes(call) !== true || this.#latest.answer !== answer) return
    this.#failed.add(kind)
    const hasLost = code === '40001' || code === '40P01'
    world.expect(!hasLost || conflicts(call) === MAX_ATTEMPTS, 'a statement that loses is sent again:', number)
  }

  #succeed(kind: Kind): void {
    this.#succeededAt[kind] = this.#pool.world.time.now
    this.#failed.delete(kind)
  }
}

const codeOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

/** Whether it is what a ping tries. */
export const isTry = ({ text }: Query): boolean => text.includes('repeat(')

/** How many statements of a call have lost conflicts, one after the other. */
function conflicts({ statements }: Call): number {
  return statements.length - 1 - statements.findLastIndex(({ isConflict }) => !isConflict)
}
