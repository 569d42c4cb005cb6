import type { ListQuery, ShortList } from '../../plants/listing.ts'
import type { EncodedPlant } from '../../plants/plant.ts'
import type { PageRequest } from '../../plants/store.ts'
import { PageBuilder } from '../page-builder.ts'
import { ShortListBuilder } from './short-list-builder.ts'

/**
 * A block that comes to this many entries is split. In smaller blocks a search misses the processor's caches more
 * often, and in larger ones an insertion moves more.
 */
const CAPACITY = 256

/** A block with fewer entries is joined with its neighbour, so that deleting frees memory. */
const SPARSE = CAPACITY / 8

/** How many entries a block has room for at first: few, so that an owner of a few plants costs little. */
const FIRST_ROOM = 8

/**
 * The plants of one owner, ascending by id: a B+tree of their JSON texts. To add or delete a plant, or to find where a
 * page starts, takes O(log n), whatever was added and deleted before.
 */
export class PlantTree {
  #root: Node = new Leaf()

  get isEmpty(): boolean {
    return this.#root.size === 0
  }

  /** @returns false if the id is taken; its plant then stays as it was */
  add(id: bigint, text: string): boolean {
    if (!this.#root.add(id, text)) return false
    if (this.#root.size === CAPACITY) this.#root = Branch.above(this.#root)
    return true
  }

  /** @returns false if there is no plant with this id */
  delete(id: bigint): boolean {
    if (!this.#root.delete(id)) return false
    if (this.#root instanceof Branch && this.#root.size === 1) this.#root = this.#root.entry(0)
    return true
  }

  list(request: PageRequest): EncodedPlant[] {
    const page = new PageBuilder(request)
    this.#root.collect((ids, texts, from) => {
      for (let at = from; at < texts.length; at++) if (!page.add(idAt(ids, at), texts[at]!)) return false
      return true
    }, request.after)
    return page.plants
  }

  /** @returns undefined if the list does not fit a page */
  listShort({ limit, after }: ListQuery): ShortList | undefined {
    const list = new ShortListBuilder(limit)
    this.#root.collect((ids, texts, from) => list.add(ids, texts, from), after)
    return list.result
  }
}

/** Takes plants, their ids and texts, from an index on. Says whether it takes those of the next leaf too. */
type Taker = (ids: BigInt64Array, texts: readonly string[], from: number) => boolean

/** A leaf, or a branch and all that is below it. */
interface Node extends Block<unknown> {
  add(id: bigint, text: string): boolean
  delete(id: bigint): boolean
  /**
   * Gives plants with an id greater than `after` to a taker, leaf by leaf.
   * @returns whether it takes more
   */
  collect(take: Taker, after: bigint | undefined): boolean
  /** Moves the entries from `at` on to a new node. */
  split(at: number): Node
}

/**
 * Entries in ascending order of their ids. In a typed array the ids stay exact, and are no objects that the garbage
 * collector has to follow.
 */
class Block<Entry> {
  ids: BigInt64Array
  entries: Entry[]

  constructor(ids: BigInt64Array = new BigInt64Array(FIRST_ROOM), entries: Entry[] = []) {
    this.ids = ids
    this.entries = entries
  }

  get size(): number {
    return this.entries.length
  }

  entry(at: number): Entry {
    return this.entries[at] as Entry
  }

  /** How many of the ids are `id` or less. */
  rank(id: bigint): number {
    let low = 0
    let high = this.size
    while (low < high) {
      const middle = (low + high) >>> 1
      if (idAt(this.ids, middle) <= id) low = middle + 1
      else high = middle
    }
    return low
  }

  insert(at: number, id: bigint, entry: Entry): void {
    if (this.size === this.ids.length) {
      const ids = new BigInt64Array(Math.min(2 * this.size, CAPACITY))
      ids.set(this.ids)
      this.ids = ids
    }
    this.ids.copyWithin(at + 1, at, this.size)
    this.ids[at] = id
    this.entries.splice(at, 0, entry)
  }

  remove(at: number): void {
    this.ids.copyWithin(at, at + 1, this.size)
    this.entries.splice(at, 1)
  }

  absorb(right: Block<Entry>): void {
    const ids = new BigInt64Array(this.size + right.size)
    ids.set(this.ids.subarray(0, this.size))
    ids.set(right.ids.subarray(0, right.size), this.size)
    this.ids = ids
    this.entries = this.entries.concat(right.entries)
  }

  /** Removes the entries from `at` on, and returns them. */
  cut(at: number): [ids: BigInt64Array, entries: Entry[]] {
    const rest: [BigInt64Array, Entry[]] = [this.ids.slice(at, this.size), this.entries.slice(at)]
    this.ids = this.ids.slice(0, at)
    this.entries = this.entries.slice(0, at)
    return rest
  }
}

/** Plants: their texts, by id. */
class Leaf extends Block<string> implements Node {
  add(id: bigint, text: string): boolean {
    const at = this.rank(id)
    if (at > 0 && this.ids[at - 1] === id) return false
    this.insert(at, id, text)
    return true
  }

  delete(id: bigint): boolean {
    const at = this.rank(id) - 1
    if (at < 0 || this.ids[at] !== id) return false
    this.remove(at)
    return true
  }

  collect(take: Taker, after: bigint | undefined): boolean {
    return take(this.ids, this.entries, after === undefined ? 0 : this.rank(after))
  }

  split(at: number): Leaf {
    return new Leaf(...this.cut(at))
  }
}

/** Nodes of the same height, each under the lowest id that it takes; the first takes lower ids too. */
class Branch extends Block<Node> implements Node {
  /** A branch over a node that has come to its capacity. */
  static above(full: Node): Branch {
    const branch = new Branch()
    branch.insert(0, idAt(full.ids, 0), full)
    branch.#splitChild(0)
    return branch
  }

  add(id: bigint, text: string): boolean {
    const at = this.#childOf(id)
    const child = this.entry(at)
    if (!child.add(id, text)) return false
    if (child.size === CAPACITY) this.#splitChild(at)
    return true
  }

  delete(id: bigint): boolean {
    const at = this.#childOf(id)
    const child = this.entry(at)
    if (!child.delete(id)) return false
    if (child.size < SPARSE) this.#joinChild(at)
    return true
  }

  collect(take: Taker, after: bigint | undefined): boolean {
    let at = after === undefined ? 0 : this.#childOf(after)
    let takesMore = this.entry(at).collect(take, after)
    while (takesMore && ++at < this.size) takesMore = this.entry(at).collect(take, undefined)
    return takesMore
  }

  split(at: number): Branch {
    return new Branch(...this.cut(at))
  }

  #childOf(id: bigint): number {
    return Math.max(0, this.rank(id) - 1)
  }

  /** Ids mostly ascend, so the last child is split near its end: split in halves, most nodes would stay half empty. */
  #splitChild(at: number): void {
    const child = this.entry(at)
    const right = child.split(at === this.size - 1 ? child.size - SPARSE : child.size >>> 1)
    this.insert(at + 1, idAt(right.ids, 0), right)
  }

  #joinChild(sparse: number): void {
    const at = Math.max(0, sparse - 1)
    const left = this.entry(at)
    left.absorb(this.entry(at + 1))
    this.remove(at + 1)
    if (left.size >= CAPACITY) this.#splitChild(at)
  }
}

/** The id at an index that is known to hold one. */
function idAt<Id>(ids: ArrayLike<Id>, index: number): Id {
  return ids[index] as Id
}
