import type { Simulation } from './simulation.ts'

/** What a plant is called by all: its owner and its id. */
export const getPlantKey = (owner: string, id: bigint | string): string => `${owner} ${id}`

/** A plant came, or went if it has no name. */
interface Change {
  readonly key: string
  readonly name: string | undefined
}

/** A statement that was sent for a call. */
interface Statement {
  readonly trackedQuery: object
  readonly sentAt: number
  /** When the first of those was sent that lost a conflict, one after the other, until this one. */
  readonly firstSentAt: number
  isConflict?: boolean
  hasResponse?: boolean
  /** Whether the server has said that it was not done. */
  isRejected?: boolean
  /** Whether the server has said that it was done, or that there was nothing to do. */
  isApplied?: boolean
}

/** A call of a client. */
export interface Call {
  readonly number: number
  readonly kind: 'create' | 'delete' | 'list'
  readonly key: string
  /** What its plant is called, unlike all others; undefined if it deletes. */
  readonly name: string | undefined
  readonly startedAt: number
  /** How many changes there were when it began. */
  readonly changesBefore: number
  /** How often it has changed its plant. */
  effectCount: number
  outcome: 'pending' | 'true' | 'false' | 'page' | 'unavailable' | 'unknown' | 'refused'
  /** Whether what it was answered by was out of date, which the store could not know. */
  isStale?: boolean
  /** Whether a fail-over would lose what it has changed. */
  isUnconfirmed?: boolean
  /** Whether a commit of it has failed in a way that may leave it done. */
  isAmbiguous?: boolean
  readonly statements: Statement[]
}

/** The plants that there are, and have been: what each answer is held against. */
export class ReferenceModel {
  readonly changes: Change[] = []
  readonly plants = new Map<string, string>()
  readonly #world: Simulation
  /** The writes that are under way. */
  readonly pendingWrites = new Set<Call>()

  constructor(world: Simulation) {
    this.#world = world
  }

  /** Creates or deletes a plant for a call. Returns whether there was anything to do. */
  applyWrite(call: Call): boolean {
    const { name } = call
    if (this.plants.has(call.key) === (name !== undefined)) return false
    this.#world.check(call.outcome !== 'unavailable', 'what is unavailable is not carried out later:', call.number)
    call.effectCount++
    this.setPlant(call.key, name)
    return true
  }

  /** Makes a plant be so. */
  setPlant(key: string, name: string | undefined): void {
    this.changes.push({ key, name })
    if (name === undefined) this.plants.delete(key)
    else this.plants.set(key, name)
  }

  /** Whether a plant was there, or was not, at some time of a call. */
  #hadStateDuring(call: Call, exists: boolean): boolean {
    let existed = false
    const states = this.changes.map(({ key, name }) => (existed = key === call.key ? name !== undefined : existed))
    return states.slice(Math.max(0, call.changesBefore - 1)).includes(exists) || (call.changesBefore === 0 && !exists)
  }

  /** Holds an answer against what was done. */
  checkOutcome(call: Call, outcome: Call['outcome']): void {
    call.outcome = outcome
    const { kind, effectCount: effects, number } = call
    const checkRule = (condition: boolean, text: string): void =>
      this.#world.check(condition || call.isStale === true, text, kind, number)
    if (outcome === 'true' || outcome === 'false')
      checkRule(call.isUnconfirmed !== true, 'what a fail-over would lose is no answer:')
    if (outcome === 'true') checkRule(effects === 1, 'what is acknowledged is done, once:')
    if (outcome === 'false') {
      checkRule(effects === 0, 'what is said to change nothing does not:')
      checkRule(this.#hadStateDuring(call, kind === 'create'), 'a plant that is said to be there, or not, was so:')
    }
    if (outcome === 'unavailable' || outcome === 'refused')
      checkRule(effects === 0, 'what has failed is not carried out:')
  }

  /** Holds a page against what was there at some time of its call. */
  checkPage(call: Call, after: bigint | undefined, isMatch: (page: readonly [bigint, string][]) => boolean): void {
    const plants = new Map<string, string>()
    const hasMatched = this.changes.some(({ key, name }, index) => {
      if (index >= call.changesBefore && isMatch(listPlantsAfter(plants, call.key, after))) return true
      if (name === undefined) plants.delete(key)
      else plants.set(key, name)
      return false
    })
    const isValid = hasMatched || isMatch(listPlantsAfter(plants, call.key, after)) || call.isStale === true
    this.#world.check(isValid, 'a page is what was there at one time of its call:', call.number)
  }
}

/** The plants of an owner, in their order. */
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
