import { isNativeError } from 'node:util/types'
import type { MaybePromise } from '../maybe-promise.ts'
import { readMember } from '../option-checks.ts'
import type { NewPlant } from './plant.ts'

/**
 * Keeps the plants. Every method may return its result at once or as a promise.
 *
 * A store keeps the plants of each owner apart: two owners may use the same id. It keeps `name` and `tag` unchanged,
 * and every `id` of int64 exactly. It may refuse owners of more than 2,000 bytes of UTF-8.
 *
 * A method throws {@link StoreUnavailableError}, or rejects with it, if trying again may help; any other error is a
 * fault. `plant-store/conformance` is the suite that says whether a store keeps this contract.
 */
export interface Store {
  /**
   * Keeps a plant. Settles once it is durable.
   * @returns false if the owner has a plant with this id already, which then stays as it was
   */
  create(owner: string, plant: NewPlant): MaybePromise<boolean>
  /**
   * Returns the owner's plants with an id greater than `after`, ascending by id, at most `limit`, and whether more
   * follow. Can stop early, after at least one plant, once the names and tags amount to `maxBytes`.
   */
  list(owner: string, request: PageRequest): MaybePromise<Page>
  /**
   * Forgets a plant. Settles once that is durable.
   * @returns false if the owner has no plant with this id
   */
  delete(owner: string, id: bigint): MaybePromise<boolean>
  /** Settles if the store can create and delete now, and else rejects. */
  ping?: (() => MaybePromise<void>) | undefined
  /** Releases what the store itself opened. Safe to call twice. */
  close?: (() => MaybePromise<void>) | undefined
  /** Closes the store at the end of an `await using`. */
  [Symbol.asyncDispose]?: (() => Promise<void>) | undefined
}

export type StoreMethod = Extract<keyof Store, string>

/** The result of {@link Store.list}. */
export interface Page {
  /** Plants of one owner, ascending by id. */
  readonly plants: readonly NewPlant[]
  /**
   * Whether the owner has more plants after these. A store that can't know returns `true`: the service then asks again,
   * and an empty page ends the list.
   */
  readonly hasMore: boolean
}

/** Which plants of an owner {@link Store.list} is asked for. */
export interface PageRequest {
  /** At most this many plants: 1 to {@link MAX_PAGE}. */
  readonly limit: number
  /**
   * The store may stop after the plant with which the names and tags of the page come to this many bytes of UTF-8; a
   * whole number of at least 1. A store that ignores it still works, but its lists may take more memory.
   */
  readonly maxBytes: number
  /** Only plants whose id is greater; from the lowest on if absent. */
  readonly after?: bigint | undefined
}

/** The most plants that a store is asked for at once. Longer lists are read page by page. */
export const MAX_PAGE = 1000

/**
 * The `maxBytes` that a store is asked for. As JSON, a page may be six times as large (RFC 8259 section 7), and its
 * last plant may be as large as a body: with both, a list still takes less than 2 MiB.
 */
export const MAX_PAGE_BYTES = 131_072

/** Options of {@link StoreUnavailableError}. */
export interface StoreUnavailableErrorOptions extends ErrorOptions {
  /** Whether the operation may have been done, or may still be. @default false */
  readonly isOutcomeUnknown?: boolean | undefined
}

/** The same symbol in every copy of the package, and in every realm. */
const BRAND = Symbol.for('plant-store.StoreUnavailableError')

/**
 * Thrown by a store that cannot serve now, if trying again may help. The client gets 503 with `Retry-After`: error
 * 50300, or 50301 if it is unknown what became of its request. Only the host's `onError` gets the `cause`.
 */
export class StoreUnavailableError extends Error {
  static {
    // An assignment would throw if a host has frozen `Error.prototype`.
    Object.defineProperty(this.prototype, 'name', {
      value: 'StoreUnavailableError',
      writable: true,
      configurable: true,
    })
    Object.defineProperty(this.prototype, BRAND, { value: BRAND })
  }

  /**
   * Also recognizes the errors of another copy of this package: a store can have its own copy, and a bundler makes one
   * for each of two bundles.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // Only errors are asked for the brand: a mock has every member, and a proxy can throw.
    if (this === StoreUnavailableError) return isNativeError(value) && Reflect.get(value, BRAND) === BRAND
    return Function.prototype[Symbol.hasInstance].call(this, value)
  }

  /** Whether the operation may have been done, or may still be. */
  readonly isOutcomeUnknown: boolean

  /** @param message for the host; the client never sees it */
  constructor(message?: string, options: StoreUnavailableErrorOptions = {}) {
    super(message, options)
    this.isOutcomeUnknown = readMember(options, 'isOutcomeUnknown') ?? false
  }
}
