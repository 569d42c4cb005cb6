import { MIN_INT64 } from '../plants/int64.ts'
import type { EncodedPage } from '../plants/encoded-list.ts'
import type { PageRequest } from '../plants/store.ts'
import { PageBuilder } from './page-builder.ts'

/** A block of this size is split. Smaller blocks cause more cache misses, and larger ones move more ids per insert. */
const MAX_BLOCK_SIZE = 256
/** The initial and minimum capacity of a block. It's small, so that an owner with few plants costs little memory. */
const MIN_CAPACITY = 4

/**
 * The plants of one owner, as JSON strings sorted by id. They are stored in blocks of fewer than `MAX_BLOCK_SIZE`
 * plants. A binary search over the lowest possible ids of the blocks finds the block of an id.
 */
export class SortedPlants {
  readonly #firstBlock = new SortedMap<string>()
  /**
   * All blocks, keyed by the lowest id that each may contain; undefined while there is only one block. The exception is
   * the first block, which also contains any ids below its key.
   */
  #blocks: SortedMap<SortedMap<string>> | undefined

  get isEmpty(): boolean {
    return this.#blockCount === 1 && this.#firstBlock.size === 0
  }

  get #blockCount(): number {
    return this.#blocks?.size ?? 1
  }

  #blockAt(blockIndex: number): SortedMap<string> {
    return blockIndex === 0 ? this.#firstBlock : this.#blocks!.values[blockIndex]!
  }

  /** Returns the index of the block that contains an id, or that the id would be added to. */
  #blockIndexOf(id: bigint): number {
    return this.#blocks === undefined ? 0 : Math.max(0, this.#blocks.upperBound(id) - 1)
  }

  /** @returns false if there already is a plant with this id */
  add(id: bigint, json: string): boolean {
    const blockIndex = this.#blockIndexOf(id)
    const block = this.#blockAt(blockIndex)
    if (!block.add(id, json)) return false
    if (block.size < MAX_BLOCK_SIZE) return true
    block.compact()
    if (block.size === MAX_BLOCK_SIZE) this.#split(blockIndex)
    return true
  }

  /** @returns false if there is no plant with this id */
  delete(id: bigint): boolean {
    const blockIndex = this.#blockIndexOf(id)
    const block = this.#blockAt(blockIndex)
    if (!block.delete(id)) return false
    if (block.size > 0 || blockIndex === 0) return true
    this.#blocks!.deleteAt(blockIndex)
    this.#blocks!.compact()
    return true
  }

  list(request: PageRequest): EncodedPage {
    const builder = new PageBuilder(request)
    const { after } = request
    let blockIndex = after === undefined ? 0 : this.#blockIndexOf(after)
    let index = after === undefined ? 0 : this.#blockAt(blockIndex).upperBound(after)
    for (; blockIndex < this.#blockCount; blockIndex++, index = 0) {
      const { ids, values } = this.#blockAt(blockIndex)
      for (; index < values.length; index++) {
        const json = values[index]
        if (json !== undefined && !builder.add(ids[index]!, json)) return builder.page
      }
    }
    return builder.page
  }

  #split(blockIndex: number): void {
    const block = this.#blockAt(blockIndex)
    // Ids usually ascend, so nothing more is added to the left half of the last block: leave it nearly full.
    const right = block.splitAt(blockIndex === this.#blockCount - 1 ? (MAX_BLOCK_SIZE * 7) / 8 : MAX_BLOCK_SIZE / 2)
    // With MIN_INT64 itself as the key, V8 would compare ids at half the speed.
    this.#blocks ??= new SortedMap(BigInt64Array.of(MIN_INT64 + 1n), [this.#firstBlock])
    this.#blocks.insertAt(blockIndex + 1, right.ids[0]!, right)
  }
}

/**
 * A map with ascending int64 keys, in a typed array, which the garbage collector doesn't have to traverse. A deleted
 * entry becomes a tombstone (an id whose value is undefined), because closing the gap would move all entries after it.
 * At most half of the entries are tombstones.
 */
class SortedMap<Value> {
  ids: BigInt64Array
  values: (Value | undefined)[]
  #tombstoneCount = 0

  constructor(ids: BigInt64Array = new BigInt64Array(MIN_CAPACITY), values: (Value | undefined)[] = []) {
    this.ids = ids
    this.values = values
  }

  /** The number of entries, including tombstones. */
  get size(): number {
    return this.values.length
  }

  /** Returns the index of the first id that is greater than `id`. */
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

  /** @returns false if the map already has this id */
  add(id: bigint, value: Value): boolean {
    const index = this.upperBound(id)
    if (index === 0 || this.ids[index - 1] !== id) {
      this.insertAt(index, id, value)
      return true
    }
    if (this.values[index - 1] !== undefined) return false
    this.values[index - 1] = value
    this.#tombstoneCount--
    return true
  }

  insertAt(index: number, id: bigint, value: Value): void {
    const { size } = this
    if (size === this.ids.length) {
      const larger = new BigInt64Array(size + Math.min(size, MAX_BLOCK_SIZE / 2))
      larger.set(this.ids)
      this.ids = larger
    }
    this.ids.copyWithin(index + 1, index, size)
    this.ids[index] = id
    // Don't grow an empty array: V8 would increase its capacity to 17.
    if (size === 0) this.values = [value]
    else this.values.splice(index, 0, value)
  }

  /** @returns false if the map doesn't have this id */
  delete(id: bigint): boolean {
    const index = this.upperBound(id) - 1
    if (index < 0 || this.ids[index] !== id || this.values[index] === undefined) return false
    this.deleteAt(index)
    return true
  }

  /** Replaces an entry with a tombstone. */
  deleteAt(index: number): void {
    this.values[index] = undefined
    this.#tombstoneCount++
    if (this.#tombstoneCount > this.size / 2) this.compact()
  }

  /** Removes the tombstones, and shrinks the array of ids if at most an eighth of it is used. */
  compact(): void {
    const { ids, values } = this
    let size = 0
    for (let index = 0; index < values.length; index++) {
      if (values[index] === undefined) continue
      ids[size] = ids[index]!
      values[size++] = values[index]
    }
    values.length = size
    this.#tombstoneCount = 0
    if (ids.length > MIN_CAPACITY && size <= ids.length / 8) this.ids = ids.slice(0, ids.length / 4)
  }

  /** Moves all entries starting at `index` into a new map, and returns that map. There must be no tombstones. */
  splitAt(index: number): SortedMap<Value> {
    const tail = new SortedMap(this.ids.slice(index, this.size), this.values.slice(index))
    this.ids = this.ids.slice(0, index)
    this.values = this.values.slice(0, index)
    return tail
  }
}
