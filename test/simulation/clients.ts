import fc from 'fast-check'
import type { NewPlant } from '../../src/plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest } from '../../src/plants/store.ts'
import type { World } from './simulation.ts'
import { keyOf, type Call, type Truth } from './truth.ts'

export const OWNERS = ['ann', 'bob'] as const

/** What a name begins with that no store takes. */
export const BAD = 'bad'

/** What a name begins with, by the size of its plant. */
const NAMES = { small: 'plant', large: 'x'.repeat(1100), bad: BAD }

/** What a scenario chooses of plants that are created or deleted. */
export const WRITES = {
  kind: fc.constantFrom<('create' | 'delete')[]>('create', 'create', 'delete'),
  plant: fc.nat(5),
  /** How many plants in a row, at once. */
  count: fc.constantFrom(1, 1, 2, 5),
}

/** What it chooses of a list. */
export const LISTS = {
  kind: fc.constant('list' as const),
  owner: fc.constantFrom(...OWNERS),
  limit: fc.constantFrom(1, 3, 100),
  after: fc.option(fc.nat(3).map(BigInt), { nil: undefined }),
}

type Chosen<T> = { readonly [K in keyof T]: T[K] extends fc.Arbitrary<infer V> ? V : never }
type Write = Chosen<typeof WRITES> & { readonly size: keyof typeof NAMES }

/** The most bytes of a page, so that large plants cut one. */
const MAX_BYTES = 3000

/** A store that is called, and who hears of its calls. */
export interface Target {
  readonly store: {
    create(owner: string, plant: NewPlant): PromiseLike<boolean> | boolean
    list(owner: string, request: PageRequest): PromiseLike<Page> | Page
    delete(owner: string, id: bigint): PromiseLike<boolean> | boolean
  }
  began(call: Call): void
  ended(call: Call, error?: unknown): void
  /** Whether this error, which does not pass, is what has befallen the store. */
  mayFail(error: unknown): boolean
}

/** Those who call stores, and hold what they are answered against the truth. */
export class Clients {
  readonly #world: World
  readonly #truth: Truth
  readonly pending = new Set<Call>()
  #count = 0

  constructor(world: World, truth: Truth) {
    this.#world = world
    this.#truth = truth
  }

  /** Does what a scenario has chosen. */
  begin(target: Target, event: Write | Chosen<typeof LISTS>): void {
    if ('owner' in event) return void this.list(target, event.owner, event.limit, event.after)
    const { kind, plant, count, size } = event
    for (let id = plant; id < plant + count; id++)
      this.#writeOne(target, kind, keyOf(OWNERS[id % 2]!, BigInt(id % 6)), size)
  }

  /** Creates a plant that nobody has. */
  createNew(target: Target): Call {
    return this.#writeOne(target, 'create', keyOf('zoe', BigInt(this.#count)), 'small')!
  }

  #writeOne(target: Target, kind: Write['kind'], key: string, size: Write['size']): Call | undefined {
    const name = kind === 'create' ? `${NAMES[size]} ${this.#count}` : undefined
    // What deletes a plant waits for its answer: nobody could tell two of them apart.
    const isTwice = [...this.#truth.writes].some((write) => write.key === key && write.name === undefined)
    if (name === undefined && isTwice) return undefined
    const call = this.#begin(target, kind, key, name)
    this.#truth.writes.add(call)
    const [owner, text] = key.split(' ') as [string, string]
    const id = BigInt(text)
    const { store } = target
    this.#follow(
      target,
      call,
      name === undefined ? store.delete(owner, id) : store.create(owner, { id, name }),
      (isDone) => {
        this.settle(target, call, isDone ? 'true' : 'false')
      },
    )
    return call
  }

  list(target: Target, owner: string, limit: number, after?: bigint): Call {
    const call = this.#begin(target, 'list', owner)
    this.#follow(
      target,
      call,
      target.store.list(owner, { limit, maxBytes: MAX_BYTES, after }),
      ({ plants: listed, hasMore }) => {
        const found = listed.map(({ id, name }) => `${id} ${name}`)
        this.#world.tell('call', call.number, found)
        const isHeavy = listed.length > 0 && listed.reduce((bytes, { name }) => bytes + name.length, 0) >= MAX_BYTES
        this.#truth.settlePage(call, after, (plants) => {
          const isWhole = isHeavy || found.length === Math.min(limit, plants.length)
          const isExact = hasMore === found.length < plants.length
          return isWhole && isExact && found.every((plant, at) => plant === plants[at]?.join(' '))
        })
        this.settle(target, call, 'page')
      },
    )
    return call
  }

  #begin(target: Target, kind: Call['kind'], key: string, name?: string): Call {
    const number = ++this.#count
    const startedAt = this.#world.time.now
    const since = this.#truth.changes.length
    const call: Call = { number, kind, key, name, startedAt, since, effects: 0, outcome: 'pending', statements: [] }
    this.#world.tell('call', call.number, kind, key)
    this.pending.add(call)
    target.began(call)
    return call
  }

  #follow<T>(target: Target, call: Call, result: PromiseLike<T> | T, onResult: (value: T) => void): void {
    Promise.resolve(result).then(
      (value) => this.pending.has(call) && onResult(value),
      (error: unknown) => {
        if (!this.pending.has(call)) return
        this.#world.tell('call', call.number, error)
        this.settle(target, call, this.#outcomeOf(target, error, call), error)
      },
    )
  }

  settle(target: Target, call: Call, outcome: Call['outcome'], error?: unknown): void {
    this.#world.tell('call', call.number, outcome)
    this.pending.delete(call)
    this.#truth.writes.delete(call)
    this.#truth.settle(call, outcome)
    target.ended(call, error)
  }

  #outcomeOf(target: Target, error: unknown, { kind, name }: Call): Call['outcome'] {
    if (!(error instanceof StoreUnavailableError)) {
      const isExpected = name?.startsWith(BAD) === true || target.mayFail(error)
      this.#world.expect(isExpected, 'an error that passes is one of availability:', error)
      return 'refused'
    }
    const { message, cause } = error
    const says = [message, cause === undefined ? message : (cause as Error).message]
    this.#world.expect(!says.includes(''), 'an error of availability says what is wrong')
    this.#world.expect(kind !== 'list' || !error.isOutcomeUnknown, 'the outcome of a list is never unknown')
    return error.isOutcomeUnknown ? 'unknown' : 'unavailable'
  }
}
