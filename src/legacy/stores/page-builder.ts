import type { EncodedPage } from '../plants/encoded-list.ts'
import { countTextBytes, EncodedPlant } from '../plants/plant.ts'
import type { PageRequest } from '../plants/store.ts'

/** Collects the plants of a page until there are `limit` plants or their names and tags add up to `maxBytes`. */
export class PageBuilder {
  readonly plants: EncodedPlant[] = []
  /** Whether `add` has rejected a plant because the page was full. */
  hasMore = false
  readonly #limit: number
  readonly #maxBytes: number
  /**
   * The size of the names and tags of the first `#countedPlants` plants, plus the size of the others' complete JSON.
   */
  #bytes = 0
  #countedPlants = 0

  constructor({ limit, maxBytes }: PageRequest) {
    this.#limit = limit
    this.#maxBytes = maxBytes
  }

  get page(): EncodedPage {
    return { plants: this.plants, hasMore: this.hasMore }
  }

  get isFull(): boolean {
    return this.plants.length === this.#limit || this.hasReachedMaxBytes
  }

  /** @returns false if the page is full, so the plant wasn't added */
  add(id: bigint, json: string): boolean {
    this.hasMore = this.isFull
    if (this.hasMore) return false
    this.#bytes += json.length
    this.plants.push(new EncodedPlant(id, json))
    return true
  }

  /**
   * Whether the names and tags add up to `maxBytes`. Counting their bytes is expensive, and only needed once the
   * plants' JSON, which is longer, adds up to `maxBytes`.
   */
  get hasReachedMaxBytes(): boolean {
    if (this.#bytes < this.#maxBytes) return false
    for (const { json } of this.plants.slice(this.#countedPlants)) this.#bytes += countTextBytes(json) - json.length
    this.#countedPlants = this.plants.length
    return this.#bytes >= this.#maxBytes
  }
}
