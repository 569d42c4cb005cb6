import type { World } from './simulation.ts'

/** What a plant is called by all: its owner and its id. */
export const keyOf = (owner: string, id: bigint | string): string => `${owner} ${id}`

/** A plant came, or went if it has no name. */
interface Change {
  readonly key: string
  readonly name: string | undefined
}

/** A statement that was sent for a call. */
interface Statement {
  readonly asked: object
  readonly beganAt: number
  /** When the first of those was sent that lost a conflict, one after the other, until this one. */
  readonly firstAt: number
  isConflict?: boolean
  isAnswered?: boolean
  /** Whether the server has said that it was not done. */
  isRefused?: boolean
  /** Whether the server has said that it was done, or that there was nothing to do. */
  isDone?: boolean
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
  readonly since: number
  /** How often it has changed its plant. */
  effects: number
  outcome: 'pending' | 'true' | 'false' | 'page' | 'unavailable' | 'unknown' | 'refused'
  /** Whether what it was answered by was out of date, which the store could not know. */
  isStale?: boolean
  /** Whether a fail-over would lose what it has changed. */
  isUnconfirmed?: boolean
  /** Whether a commit of it has failed in a way that may leave it done. */
  isUnsure?: boolean
  readonly statements: Statement[]
}

/** The plants that there are, and have been: what each answer is held against. */
export class Truth {
  readonly changes: Change[] = []
  readonly plants = new Map<string, string>()
  readonly #world: World
  /** The writes that are under way. */
  readonly writes = new Set<Call>()

  constructor(world: World) {
    this.#world = world
  }

  /** Creates or deletes a plant for a call. Returns whether there was anything to do. */
  write(call: Call): boolean {
    const { name } = call
    if (this.plants.has(call.key) === (name !== undefined)) return false
    this.#world.expect(call.outcome !== 'unavailable', 'what is unavailable is not carried out later:', call.number)
    call.effects++
    this.set(call.key, name)
    return true
  }

  /** Makes a plant be so. */
  set(key: string, name: string | undefined): void {
    this.changes.push({ key, name })
    if (name === undefined) this.plants.delete(key)
    else this.plants.set(key, name)
  }

  /** Whether a plant was there, or was not, at some time of a call. */
  #was(call: Call, isThere: boolean): boolean {
    let isNow = false
    const seen = this.changes.map(({ key, name }) => (isNow = key === call.key ? name !== undefined : isNow))
    return seen.slice(Math.max(0, call.since - 1)).includes(isThere) || (call.since === 0 && !isThere)
  }

  /** Holds an answer against what was done. */
  settle(call: Call, outcome: Call['outcome']): void {
    call.outcome = outcome
    const { kind, effects, number } = call
    const rule = (isSo: boolean, text: string): void =>
      this.#world.expect(isSo || call.isStale === true, text, kind, number)
    if (outcome === 'true' || outcome === 'false')
      rule(call.isUnconfirmed !== true, 'what a fail-over would lose is no answer:')
    if (outcome === 'true') rule(effects === 1, 'what is acknowledged is done, once:')
    if (outcome === 'false') {
      rule(effects === 0, 'what is said to change nothing does not:')
      rule(this.#was(call, kind === 'create'), 'a plant that is said to be there, or not, was so:')
    }
    if (outcome === 'unavailable' || outcome === 'refused') rule(effects === 0, 'what has failed is not carried out:')
  }

  /** Holds a page against what was there at some time of its call. */
  settlePage(call: Call, after: bigint | undefined, isRight: (page: readonly [bigint, string][]) => boolean): void {
    const plants = new Map<string, string>()
    const isSeen = this.changes.some(({ key, name }, at) => {
      if (at >= call.since && isRight(pageOf(plants, call.key, after))) return true
      if (name === undefined) plants.delete(key)
      else plants.set(key, name)
      return false
    })
    const isSo = isSeen || isRight(pageOf(plants, call.key, after)) || call.isStale === true
    this.#world.expect(isSo, 'a page is what was there at one time of its call:', call.number)
  }
}

/** The plants of an owner, in their order. */
export function pageOf(
  plants: ReadonlyMap<string, string>,
  owner: string,
  after: bigint | undefined,
): readonly [bigint, string][] {
  return [...plants]
    .map(([key, name]) => [key.split(' '), name] as const)
    .filter(([[of, id]]) => of === owner && (after === undefined || BigInt(id!) > after))
    .map(([[, id], name]) => [BigInt(id!), name] as [bigint, string])
    .sort(([a], [b]) => (a < b ? -1 : 1))
}
