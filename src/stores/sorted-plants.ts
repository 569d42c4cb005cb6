import { MIN_INT64 } from '../plants/int64.ts'
import type { EncodedPage } from '../plants/encoded-list.ts'
import type { PageRequest } from '../plants/store.ts'
import { PageBuilder } from './page-builder.ts'

/** A block of this many plants is split: smaller ones miss the processor's caches, larger ones move more. */
const CAPACITY = 256
/** The room of a new block, and the least of any: little, so that an owner of a few plants costs little. */
const LEAST_ROOM = 4

/** The JSON texts of the plants of one owner, ascending by id, in blocks. */
export class SortedPlants {
  readonly #first = new Entries<string>()
  /** Once there are several, each block under the lowest id that it takes; the first one takes any lower id too. */
  #blocks: Entries<Entries<string>> | undefined

  get isEmpty(): boolean {
    return this.#count === 1 && this.#first.size === 0
  }

  get #count(): number {
    return this.#blocks?.size ?? 1
  }

  #block(number: number): Entries<string> {
    return number === 0 ? this.#first : this.#blocks!.entries[number]!
  }

  add(id: bigint, text: string): boolean {
    const number = this.#blockOf(id)
    const block = this.#block(number)
    const rank = block.rank(id)
    if (rank > 0 && block.ids[rank - 1] === id) return block.replace(rank - 1, text)
    block.insert(rank, id, text)
    if (block.size < CAPACITY) return true
    block.compact()
    if (block.size === CAPACITY) this.#split(number)
    return true
  }

  delete(id: bigint): boolean {
    const number = this.#blockOf(id)
    const block = this.#block(number)
    const at = block.rank(id) - 1
    if (at < 0 || block.ids[at] !== id || !block.replace(at, undefined)) return false
    if (block.size > 0 || number === 0) return true
    this.#blocks!.replace(number, undefined)
    this.#blocks!.compact()
    return true
  }

  list(request: PageRequest): EncodedPage {
    const builder = new PageBuilder(request)
    const { after } = request
    let number = after === undefined ? 0 : this.#blockOf(after)
    let at = after === undefined ? 0 : this.#block(number).rank(after)
    for (; number < this.#count; number++, at = 0) {
      const { ids, entries } = this.#block(number)
      for (; at < entries.length; at++) {
        const text = entries[at]
        if (text !== undefined && !builder.add(ids[at]!, text)) return builder.page
      }
    }
    return builder.page
  }

  #blockOf(id: bigint): number {
    return this.#blocks === undefined ? 0 : Math.max(0, this.#blocks.rank(id) - 1)
  }

  /** Ids mostly ascend, so the last block is split near its end. Otherwise most blocks would stay half empty. */
  #split(number: number): void {
    const block = this.#block(number)
    const right = block.cut(number === this.#count - 1 ? (CAPACITY * 7) / 8 : CAPACITY / 2)
    // MIN_INT64 itself would make V8 compare ids at half the speed.
    this.#blocks ??= new Entries(BigInt64Array.of(MIN_INT64 + 1n), [this.#first])
    this.#blocks.insert(number + 1, right.ids[0]!, right)
  }
}

/** Entries, ascending by id. In a typed array, ids are exact, and nothing that the garbage collector follows. */
class Entries<Entry> {
  ids: BigInt64Array
  /** Those that were removed are undefined, and at most half: to move what is behind each of them would be dear. */
  entries: (Entry | undefined)[]
  #removed = 0

  constructor(ids: BigInt64Array = new BigInt64Array(LEAST_ROOM), entries: (Entry | undefined)[] = []) {
    this.ids = ids
    this.entries = entries
  }

  get size(): number {
    return this.entries.length
  }

  /** How many of the ids are `id` or less. */
  rank(id: bigint): number {
    let low = 0
    let high = this.size
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.ids[middle]! <= id) low = middle + 1
      else high = middle
    }
    return low
  }

  insert(at: number, id: bigint, entry: Entry): void {
    const { size } = this
    if (size === this.ids.length) {
      const larger = new BigInt64Array(size + Math.min(size, CAPACITY / 2))
      larger.set(this.ids)
      this.ids = larger
    }
    this.ids.copyWithin(at + 1, at, size)
    this.ids[at] = id
    // An array that grows from nothing gets room for 17.
    if (size === 0) this.entries = [entry]
    else this.entries.splice(at, 0, entry)
  }

  /** Removes an entry, or puts one where one was removed; returns false if that is so already. */
  replace(at: number, entry: Entry | undefined): boolean {
    if ((this.entries[at] === undefined) === (entry === undefined)) return false
    this.entries[at] = entry
    this.#removed += entry === undefined ? 1 : -1
    if (this.#removed > this.size / 2) this.compact()
    return true
  }

  /** Drops what was removed, and gives memory back once little of it is in use. */
  compact(): void {
    const { ids, entries } = this
    let size = 0
    for (let at = 0; at < entries.length; at++) {
      if (entries[at] === undefined) continue
      ids[size] = ids[at]!
      entries[size++] = entries[at]
    }
    entries.length = size
    this.#removed = 0
    if (ids.length > LEAST_ROOM && size <= ids.length / 8) this.ids = ids.slice(0, ids.length / 4)
  }

  cut(at: number): Entries<Entry> {
    const rest = new Entries(this.ids.slice(at, this.size), this.entries.slice(at))
    this.ids = this.ids.slice(0, at)
    this.entries = this.entries.slice(0, at)
    return rest
  }
}
