import type { EncodedPage } from '../plants/encoded-list.ts'
import { countTextBytes, EncodedPlant } from '../plants/plant.ts'
import type { PageRequest } from '../plants/store.ts'

/** Collects the plants of a page, up to `limit`, or until their names and tags come to `maxBytes`. */
export class PageBuilder {
  readonly plants: EncodedPlant[] = []
  /** Whether a plant was offered that didn't fit anymore. */
  hasMore = false
  readonly #limit: number
  readonly #maxBytes: number
  /** The bytes of the names and tags of the counted plants, and of the texts of the others. */
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

  /** @returns false if the page was full, so the plant isn't part of it */
  add(id: bigint, json: string): boolean {
    this.hasMore = this.isFull
    if (this.hasMore) return false
    this.#bytes += json.length
    this.plants.push(new EncodedPlant(id, json))
    return true
  }

  /** Whether names and tags have come to `maxBytes`. They are counted only if the texts have, which is rare. */
  get hasReachedMaxBytes(): boolean {
    if (this.#bytes < this.#maxBytes) return false
    for (const { json: rest } of this.plants.slice(this.#countedPlants))
      this.#bytes += countTextBytes(rest) - rest.length
    this.#countedPlants = this.plants.length
    return this.#bytes >= this.#maxBytes
  }
}
