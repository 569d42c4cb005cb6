import { MIN_INT64 } from '../plants/int64.ts'
import type { EncodedPage } from '../plants/encoded-list.ts'
import type { PageRequest } from '../plants/store.ts'
import { PageBuilder } from './page-builder.ts'

/** A block of this many plants is split: smaller ones miss the processor's caches, larger ones move more. */
const MAX_BLOCK_SIZE = 256
/** The room of a new block, and the least of any: little, so that an owner of a few plants costs little. */
const MIN_CAPACITY = 4

/** The JSON texts of the plants of one owner, ascending by id, in blocks. */
export class SortedPlants {
  readonly #firstBlock = new SortedEntries<string>()
  /** Once there are several, each block under the lowest id that it takes; the first one takes any lower id too. */
  #blocks: SortedEntries<SortedEntries<string>> | undefined

  get isEmpty(): boolean {
    return this.#blockCount === 1 && this.#firstBlock.size === 0
  }

  get #blockCount(): number {
    return this.#blocks?.size ?? 1
  }

  #blockAt(blockIndex: number): SortedEntries<string> {
    return blockIndex === 0 ? this.#firstBlock : this.#blocks!.entries[blockIndex]!
  }

  add(id: bigint, json: string): boolean {
    const blockIndex = this.#findBlockIndex(id)
    const block = this.#blockAt(blockIndex)
    const insertIndex = block.upperBound(id)
    if (insertIndex > 0 && block.ids[insertIndex - 1] === id) return block.setSlot(insertIndex - 1, json)
    block.insert(insertIndex, id, json)
    if (block.size < MAX_BLOCK_SIZE) return true
    block.compact()
    if (block.size === MAX_BLOCK_SIZE) this.#split(blockIndex)
    return true
  }

  delete(id: bigint): boolean {
    const blockIndex = this.#findBlockIndex(id)
    const block = this.#blockAt(blockIndex)
    const index = block.upperBound(id) - 1
    if (index < 0 || block.ids[index] !== id || !block.setSlot(index, undefined)) return false
    if (block.size > 0 || blockIndex === 0) return true
    this.#blocks!.setSlot(blockIndex, undefined)
    this.#blocks!.compact()
    return true
  }

  list(request: PageRequest): EncodedPage {
    const builder = new PageBuilder(request)
    const { after } = request
    let blockIndex = after === undefined ? 0 : this.#findBlockIndex(after)
    let index = after === undefined ? 0 : this.#blockAt(blockIndex).upperBound(after)
    for (; blockIndex < this.#blockCount; blockIndex++, index = 0) {
      const { ids, entries } = this.#blockAt(blockIndex)
      for (; index < entries.length; index++) {
        const json = entries[index]
        if (json !== undefined && !builder.add(ids[index]!, json)) return builder.page
      }
    }
    return builder.page
  }

  #findBlockIndex(id: bigint): number {
    return this.#blocks === undefined ? 0 : Math.max(0, this.#blocks.upperBound(id) - 1)
  }

  /** Ids mostly ascend, so the last block is split near its end. Otherwise most blocks would stay half empty. */
  #split(blockIndex: number): void {
    const block = this.#blockAt(blockIndex)
    const right = block.splitAt(blockIndex === this.#blockCount - 1 ? (MAX_BLOCK_SIZE * 7) / 8 : MAX_BLOCK_SIZE / 2)
    // MIN_INT64 itself would make V8 compare ids at half the speed.
    this.#blocks ??= new SortedEntries(BigInt64Array.of(MIN_INT64 + 1n), [this.#firstBlock])
    this.#blocks.insert(blockIndex + 1, right.ids[0]!, right)
  }
}

/** Entries, ascending by id. In a typed array, ids are exact, and nothing that the garbage collector follows. */
class SortedEntries<Entry> {
  ids: BigInt64Array
  /** Those that were removed are undefined, and at most half: to move what is behind each of them would be dear. */
  entries: (Entry | undefined)[]
  #removedCount = 0

  constructor(ids: BigInt64Array = new BigInt64Array(MIN_CAPACITY), entries: (Entry | undefined)[] = []) {
    this.ids = ids
    this.entries = entries
  }

  get size(): number {
    return this.entries.length
  }

  /** How many of the ids are `id` or less. */
  upperBound(id: bigint): number {
    let low = 0
    let high = this.size
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.ids[middle]! <= id) low = middle + 1
      else high = middle
    }
    return low
  }

  insert(index: number, id: bigint, entry: Entry): void {
    const { size } = this
    if (size === this.ids.length) {
      const larger = new BigInt64Array(size + Math.min(size, MAX_BLOCK_SIZE / 2))
      larger.set(this.ids)
      this.ids = larger
    }
    this.ids.copyWithin(index + 1, index, size)
    this.ids[index] = id
    // An array that grows from nothing gets room for 17.
    if (size === 0) this.entries = [entry]
    else this.entries.splice(index, 0, entry)
  }

  /** Removes an entry, or puts one where one was removed; returns false if that is so already. */
  setSlot(index: number, entry: Entry | undefined): boolean {
    if ((this.entries[index] === undefined) === (entry === undefined)) return false
    this.entries[index] = entry
    this.#removedCount += entry === undefined ? 1 : -1
    if (this.#removedCount > this.size / 2) this.compact()
    return true
  }

  /** Drops what was removed, and gives memory back once little of it is in use. */
  compact(): void {
    const { ids, entries } = this
    let size = 0
    for (let index = 0; index < entries.length; index++) {
      if (entries[index] === undefined) continue
      ids[size] = ids[index]!
      entries[size++] = entries[index]
    }
    entries.length = size
    this.#removedCount = 0
    if (ids.length > MIN_CAPACITY && size <= ids.length / 8) this.ids = ids.slice(0, ids.length / 4)
  }

  splitAt(index: number): SortedEntries<Entry> {
    const tail = new SortedEntries(this.ids.slice(index, this.size), this.entries.slice(index))
    this.ids = this.ids.slice(0, index)
    this.entries = this.entries.slice(0, index)
    return tail
  }
}
