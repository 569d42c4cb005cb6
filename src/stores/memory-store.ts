import { Buffer } from 'node:buffer'
import { encodePlant, type EncodedPlant, type NewPlant } from '../plants/plant.ts'
import type { Page, PageRequest, Store } from '../plants/store.ts'

/** A store that keeps plants in memory. */
export interface MemoryStore extends Store {
  /** Does nothing, and exists only so that `await using` works. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Creates a store that keeps plants in memory until the process exits, for tests and for trying things out. Its methods
 * return their results synchronously.
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createPlantStore, memoryStore } from 'plant-store'
 *
 * const tokens = { 'a-long-random-token': 'ada' }
 * const plants = createPlantStore({ store: memoryStore(), tokens })
 *
 * createServer(plants).listen(3000)
 */
export function memoryStore(): MemoryStore {
  const blocksByOwner = new Map<string, Block[]>()

  return {
    create(owner, plant) {
      let blocks = blocksByOwner.get(owner)
      if (blocks === undefined) blocksByOwner.set(owner, (blocks = [[]]))
      return addPlant(blocks, plant)
    },
    list(owner, request) {
      return readPage(blocksByOwner.get(owner) ?? [[]], request)
    },
    delete(owner, id) {
      const blocks = blocksByOwner.get(owner)
      if (blocks === undefined || !deletePlant(blocks, id)) return false
      if (blocks.length === 0) blocksByOwner.delete(owner)
      return true
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

interface StoredPlant extends EncodedPlant {
  readonly json: string
  /** The size of the texts in UTF-8. */
  readonly bytes: number
}

/**
 * Some of an owner's plants, in ascending order of id. All ids of a block are less than those of the next block. In a
 * single array of 100,000 plants, an insertion would move so many of them that it took longer than the whole request.
 */
type Block = StoredPlant[]

const MAX_BLOCK_SIZE = 512

function addPlant(blocks: Block[], plant: NewPlant): boolean {
  const blockIndex = findBlock(blocks, plant.id)
  const block = blocks[blockIndex]!
  const index = indexAfter(block, plant.id)
  if (index > 0 && block[index - 1]!.id === plant.id) return false
  const { id, name, tag } = plant
  const bytes = Buffer.byteLength(name) + (tag === undefined ? 0 : Buffer.byteLength(tag))
  block.splice(index, 0, { id, name, tag, json: encodePlant(plant, false), bytes })
  if (block.length > MAX_BLOCK_SIZE) blocks.splice(blockIndex + 1, 0, block.splice(MAX_BLOCK_SIZE / 2))
  return true
}

function deletePlant(blocks: Block[], id: bigint): boolean {
  const blockIndex = findBlock(blocks, id)
  const block = blocks[blockIndex]!
  const index = indexAfter(block, id) - 1
  if (index < 0 || block[index]!.id !== id) return false
  block.splice(index, 1)
  if (block.length === 0) blocks.splice(blockIndex, 1)
  return true
}

function readPage(blocks: readonly Block[], { limit, maxBytes, after }: PageRequest): Page {
  const plants: StoredPlant[] = []
  let blockIndex = after === undefined ? 0 : findBlock(blocks, after)
  let index = after === undefined ? 0 : indexAfter(blocks[blockIndex]!, after)
  let bytes = 0
  for (; blockIndex < blocks.length; blockIndex++, index = 0) {
    const block = blocks[blockIndex]!
    for (; index < block.length; index++) {
      if (plants.length === limit || bytes >= maxBytes) return { plants, hasMore: true }
      plants.push(block[index]!)
      bytes += block[index]!.bytes
    }
  }
  return { plants, hasMore: false }
}

/** Returns the index of the block that an id is in, or that it would be added to. */
function findBlock(blocks: readonly Block[], id: bigint): number {
  let low = 1
  let high = blocks.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (blocks[middle]![0]!.id <= id) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Returns the index of the first plant whose id is greater than `id`. */
function indexAfter(block: Block, id: bigint): number {
  let low = 0
  let high = block.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (block[middle]!.id <= id) low = middle + 1
    else high = middle
  }
  return low
}
