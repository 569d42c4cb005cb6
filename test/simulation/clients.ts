import fc from 'fast-check'
import type { NewPlant } from '../../src/plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest } from '../../src/plants/store.ts'
import type { Simulation } from './simulation.ts'
import { getPlantKey, type Call, type ReferenceModel } from './reference-model.ts'

export const OWNERS = ['ann', 'bob'] as const

/** Prefix of names that every store rejects. */
export const INVALID_PREFIX = 'bad'

/** Prefixes of names, by size of the plant. */
const NAME_PREFIXES = { small: 'plant', large: 'x'.repeat(1100), bad: INVALID_PREFIX }

/** Arbitraries for a write event. */
export const WRITE_FIELDS = {
  kind: fc.constantFrom<('create' | 'delete')[]>('create', 'create', 'delete'),
  plant: fc.nat(5),
  /** How many plants with consecutive ids are written concurrently. */
  count: fc.constantFrom(1, 1, 2, 5),
}

/** Arbitraries for a list event. */
export const LIST_FIELDS = {
  kind: fc.constant('list' as const),
  owner: fc.constantFrom(...OWNERS),
  limit: fc.constantFrom(1, 3, 100),
  after: fc.option(fc.nat(3).map(BigInt), { nil: undefined }),
}

type Generated<T> = { readonly [K in keyof T]: T[K] extends fc.Arbitrary<infer V> ? V : never }
type Write = Generated<typeof WRITE_FIELDS> & { readonly size: keyof typeof NAME_PREFIXES }

/** Small enough that a few large plants fill a page. */
const MAX_PAGE_BYTES = 3000

/** A store under test, with callbacks for its calls. */
export interface CallTarget {
  readonly store: {
    create(owner: string, plant: NewPlant): PromiseLike<boolean> | boolean
    list(owner: string, request: PageRequest): PromiseLike<Page> | Page
    delete(owner: string, id: bigint): PromiseLike<boolean> | boolean
  }
  onCallStart(call: Call): void
  onCallEnd(call: Call, error?: unknown): void
  /** Whether an error other than StoreUnavailableError is due to an injected fault. */
  isExpectedError(error: unknown): boolean
}

/** Simulated clients that call stores and check the results against the reference model. */
export class Clients {
  readonly #world: Simulation
  readonly #model: ReferenceModel
  readonly pendingCalls = new Set<Call>()
  #callCount = 0

  constructor(world: Simulation, model: ReferenceModel) {
    this.#world = world
    this.#model = model
  }

  /** Starts the calls of an event. */
  startEvent(target: CallTarget, event: Write | Generated<typeof LIST_FIELDS>): void {
    if ('owner' in event) return void this.list(target, event.owner, event.limit, event.after)
    const { kind, plant, count, size } = event
    for (let id = plant; id < plant + count; id++)
      this.#startWrite(target, kind, getPlantKey(OWNERS[id % 2]!, BigInt(id % 6)), size)
  }

  /** Creates a plant with a key that no other call uses. */
  createUniquePlant(target: CallTarget): Call {
    return this.#startWrite(target, 'create', getPlantKey('zoe', BigInt(this.#callCount)), 'small')!
  }

  #startWrite(target: CallTarget, kind: Write['kind'], key: string, size: Write['size']): Call | undefined {
    const name = kind === 'create' ? `${NAME_PREFIXES[size]} ${this.#callCount}` : undefined
    // At most one delete of a plant is pending at a time, because two deletes can't be distinguished.
    const isDuplicateDelete = [...this.#model.pendingWrites].some(
      (write) => write.key === key && write.name === undefined,
    )
    if (name === undefined && isDuplicateDelete) return undefined
    const call = this.#startCall(target, kind, key, name)
    this.#model.pendingWrites.add(call)
    const [owner, text] = key.split(' ') as [string, string]
    const id = BigInt(text)
    const { store } = target
    this.#track(
      target,
      call,
      name === undefined ? store.delete(owner, id) : store.create(owner, { id, name }),
      (hasChanged) => {
        this.finishCall(target, call, hasChanged ? 'true' : 'false')
      },
    )
    return call
  }

  list(target: CallTarget, owner: string, limit: number, after?: bigint): Call {
    const call = this.#startCall(target, 'list', owner)
    this.#track(
      target,
      call,
      target.store.list(owner, { limit, maxBytes: MAX_PAGE_BYTES, after }),
      ({ plants, hasMore }) => {
        const actual = plants.map(({ id, name }) => `${id} ${name}`)
        this.#world.log('call', call.number, actual)
        const hasReachedMaxBytes =
          plants.length > 0 && plants.reduce((bytes, { name }) => bytes + name.length, 0) >= MAX_PAGE_BYTES
        this.#model.checkPage(call, after, (expected) => {
          const isComplete = hasReachedMaxBytes || actual.length === Math.min(limit, expected.length)
          const isHasMoreExact = hasMore === actual.length < expected.length
          return isComplete && isHasMoreExact && actual.every((plant, index) => plant === expected[index]?.join(' '))
        })
        this.finishCall(target, call, 'page')
      },
    )
    return call
  }

  #startCall(target: CallTarget, kind: Call['kind'], key: string, name?: string): Call {
    const number = ++this.#callCount
    const startedAt = this.#world.time.now
    const changesBefore = this.#model.changes.length
    const call: Call = {
      number,
      kind,
      key,
      name,
      startedAt,
      changesBefore,
      effectCount: 0,
      outcome: 'pending',
      statements: [],
    }
    this.#world.log('call', call.number, kind, key)
    this.pendingCalls.add(call)
    target.onCallStart(call)
    return call
  }

  #track<T>(target: CallTarget, call: Call, result: PromiseLike<T> | T, onResult: (value: T) => void): void {
    Promise.resolve(result).then(
      (value) => this.pendingCalls.has(call) && onResult(value),
      (error: unknown) => {
        if (!this.pendingCalls.has(call)) return
        this.#world.log('call', call.number, error)
        this.finishCall(target, call, this.#classifyError(target, error, call), error)
      },
    )
  }

  finishCall(target: CallTarget, call: Call, outcome: Call['outcome'], error?: unknown): void {
    this.#world.log('call', call.number, outcome)
    this.pendingCalls.delete(call)
    this.#model.pendingWrites.delete(call)
    this.#model.checkOutcome(call, outcome)
    target.onCallEnd(call, error)
  }

  #classifyError(target: CallTarget, error: unknown, { kind, name }: Call): Call['outcome'] {
    if (!(error instanceof StoreUnavailableError)) {
      const isExpected = name?.startsWith(INVALID_PREFIX) === true || target.isExpectedError(error)
      this.#world.check(isExpected, 'every temporary error is a StoreUnavailableError:', error)
      return 'refused'
    }
    const { message, cause } = error
    const messages = [message, cause === undefined ? message : (cause as Error).message]
    this.#world.check(!messages.includes(''), 'a StoreUnavailableError and its cause have messages')
    this.#world.check(kind !== 'list' || !error.isOutcomeUnknown, 'the outcome of a list is never unknown')
    return error.isOutcomeUnknown ? 'unknown' : 'unavailable'
  }
}
