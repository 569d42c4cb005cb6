import type { ShortList } from '../../plants/listing.ts'
import { MAX_PAGE, MAX_PAGE_BYTES } from '../../plants/store.ts'

/** Joins the texts of plants to a list, as long as it fits a page. */
export class ShortListBuilder {
  readonly #limit: number
  #text = '['
  #count = 0
  /** Of the plant that was added last. */
  #id: bigint | undefined
  /** Whether there are more plants than were added. */
  #isCut = false

  /** @param limit how many plants the list may have */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Adds plants, from an index on, in a loop over local variables: a call for each plant takes as long as joining it.
   * @returns whether to go on: the list takes more plants, or it is to be known whether there are more
   */
  add(ids: BigInt64Array, texts: readonly string[], from: number): boolean {
    const stop = Math.min(texts.length, from + Math.min(this.#limit, MAX_PAGE) - this.#count)
    let text = this.#text
    let at = from
    for (; at < stop && text.length <= MAX_PAGE_BYTES; at++) {
      if (text.length > 1) text += ','
      text += texts[at]!
    }
    this.#text = text
    this.#count += at - from
    if (at > from) this.#id = ids[at - 1]
    this.#isCut = at < texts.length
    return !this.#isCut
  }

  /** The list; undefined if it does not fit a page. */
  get result(): ShortList | undefined {
    if (this.#text.length > MAX_PAGE_BYTES || (this.#isCut && this.#count < this.#limit)) return undefined
    return { body: `${this.#text}]`, cursor: this.#isCut ? this.#id : undefined }
  }
}
