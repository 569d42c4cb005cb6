import type { Simulation } from './simulation.ts'

/** Returns the key of a plant in the model: its owner and its id. */
export const getPlantKey = (owner: string, id: bigint | string): string => `${owner} ${id}`

/** The creation of a plant, or its deletion if `name` is undefined. */
interface Change {
  readonly key: string
  readonly name: string | undefined
}

/** An SQL statement that was sent for a call. */
interface Statement {
  readonly trackedQuery: object
  readonly sentAt: number
  /** When the first statement in an unbroken series of conflicts up to this one was sent. */
  readonly firstSentAt: number
  isConflict?: boolean
  hasResponse?: boolean
  /** Whether the server reported that the statement had no effect. */
  isRejected?: boolean
  /** Whether the server reported that the statement succeeded or had nothing to do. */
  isApplied?: boolean
}

/** A client's call to a store. */
export interface Call {
  readonly number: number
  readonly kind: 'create' | 'delete' | 'list'
  readonly key: string
  /** The unique name of the plant to create; undefined for a delete or a list. */
  readonly name: string | undefined
  readonly startedAt: number
  /** The number of changes before the call started. */
  readonly changesBefore: number
  /** How often the call has changed its plant. */
  effectCount: number
  outcome: 'pending' | 'true' | 'false' | 'page' | 'unavailable' | 'unknown' | 'refused'
  /** Whether a stale server answered the call, which the store couldn't detect. */
  isStale?: boolean
  /** Whether a failover would lose the change. */
  isUnconfirmed?: boolean
  /** Whether a commit failed with an unknown outcome. */
  isAmbiguous?: boolean
  readonly statements: Statement[]
}

/** The true history of all plants, against which each result is checked. */
export class ReferenceModel {
  readonly changes: Change[] = []
  readonly plants = new Map<string, string>()
  readonly #world: Simulation
  /** The writes in flight. */
  readonly pendingWrites = new Set<Call>()

  constructor(world: Simulation) {
    this.#world = world
  }

  /** Creates or deletes the plant of a call. Returns false if there was nothing to do. */
  applyWrite(call: Call): boolean {
    const { name } = call
    if (this.plants.has(call.key) === (name !== undefined)) return false
    this.#world.check(
      call.outcome !== 'unavailable',
      'a write that was reported as unavailable is not applied later:',
      call.number,
    )
    call.effectCount++
    this.setPlant(call.key, name)
    return true
  }

  /** Sets the state of a plant. */
  setPlant(key: string, name: string | undefined): void {
    this.changes.push({ key, name })
    if (name === undefined) this.plants.delete(key)
    else this.plants.set(key, name)
  }

  /** Whether the plant of a call existed, or was absent, at some time during the call. */
  #hadStateDuring(call: Call, exists: boolean): boolean {
    let existed = false
    const states = this.changes.map(({ key, name }) => (existed = key === call.key ? name !== undefined : existed))
    return states.slice(Math.max(0, call.changesBefore - 1)).includes(exists) || (call.changesBefore === 0 && !exists)
  }

  /** Checks the outcome of a call against its effects. */
  checkOutcome(call: Call, outcome: Call['outcome']): void {
    call.outcome = outcome
    const { kind, effectCount, number } = call
    const checkRule = (condition: boolean, text: string): void =>
      this.#world.check(condition || call.isStale === true, text, kind, number)
    if (outcome === 'true' || outcome === 'false')
      checkRule(call.isUnconfirmed !== true, 'a change that a failover would lose is not acknowledged:')
    if (outcome === 'true') checkRule(effectCount === 1, 'an acknowledged write is applied exactly once:')
    if (outcome === 'false') {
      checkRule(effectCount === 0, 'a write that reports no change has no effect:')
      const isTrue = this.#hadStateDuring(call, kind === 'create')
      checkRule(isTrue, 'a plant that is reported as existing or missing was so during the call:')
    }
    if (outcome === 'unavailable' || outcome === 'refused')
      checkRule(effectCount === 0, 'a failed write has no effect:')
  }

  /** Checks that a page matches the plants at some time during its call. */
  checkPage(call: Call, after: bigint | undefined, isMatch: (page: readonly [bigint, string][]) => boolean): void {
    const plants = new Map<string, string>()
    const hasMatched = this.changes.some(({ key, name }, index) => {
      if (index >= call.changesBefore && isMatch(listPlantsAfter(plants, call.key, after))) return true
      if (name === undefined) plants.delete(key)
      else plants.set(key, name)
      return false
    })
    const isValid = hasMatched || isMatch(listPlantsAfter(plants, call.key, after)) || call.isStale === true
    this.#world.check(isValid, 'a page is a consistent snapshot from the time of its call:', call.number)
  }
}

/** Returns an owner's plants after an id, in ascending order. */
export function listPlantsAfter(
  plants: ReadonlyMap<string, string>,
  owner: string,
  after: bigint | undefined,
): readonly [bigint, string][] {
  return [...plants]
    .map(([key, name]) => [key.split(' '), name] as const)
    .filter(([[plantOwner, id]]) => plantOwner === owner && (after === undefined || BigInt(id!) > after))
    .map(([[, id], name]) => [BigInt(id!), name] as [bigint, string])
    .sort(([a], [b]) => (a < b ? -1 : 1))
}
