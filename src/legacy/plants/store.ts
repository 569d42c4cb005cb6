import { isNativeError } from 'node:util/types'
import type { MaybePromise } from '../maybe-promise.ts'
import { readMember } from '../option-checks.ts'
import type { NewPlant } from './plant.ts'

/**
 * Stores plants. Every method may return its result synchronously or as a promise.
 *
 * A store keeps the plants of different owners separate: two owners can use the same id. It preserves `name`, `tag` and
 * every int64 `id` exactly. It may reject owners that are longer than 2,000 bytes of UTF-8.
 *
 * If retrying can help, a method throws or rejects with {@link StoreUnavailableError}; any other error counts as an
 * internal error. The test suite `plant-store/conformance` checks whether a store meets these requirements.
 */
export interface Store {
  /**
   * Creates a plant. Settles once the plant is durable.
   * @returns false if the owner already has a plant with this id, which then remains unchanged
   */
  create(owner: string, plant: NewPlant): MaybePromise<boolean>
  /**
   * Returns at most `limit` of the owner's plants with ids greater than `after`, in ascending order of id, and whether
   * there are more. May stop early, after at least one plant, once the names and tags add up to `maxBytes`.
   */
  list(owner: string, request: PageRequest): MaybePromise<Page>
  /**
   * Deletes a plant. Settles once the deletion is durable.
   * @returns false if the owner has no plant with this id
   */
  delete(owner: string, id: bigint): MaybePromise<boolean>
  /** Throws or rejects if the store currently can't create and delete plants. */
  ping?: (() => MaybePromise<void>) | undefined
  /** Releases the resources that the store itself opened. Safe to call twice. */
  close?: (() => MaybePromise<void>) | undefined
  /** Closes the store at the end of an `await using` scope. */
  [Symbol.asyncDispose]?: (() => Promise<void>) | undefined
}

export type StoreMethod = Extract<keyof Store, string>

/** The result of {@link Store.list}. */
export interface Page {
  /** Plants of one owner, in ascending order of id. */
  readonly plants: readonly NewPlant[]
  /**
   * Whether the owner has more plants after these. A store that doesn't know returns `true`: the service then requests
   * another page, and an empty page ends the list.
   */
  readonly hasMore: boolean
}

/** Selects plants of an owner for {@link Store.list}. */
export interface PageRequest {
  /** The maximum number of plants to return, from 1 to {@link MAX_PAGE}. */
  readonly limit: number
  /**
   * A size limit for the page, in bytes; at least 1. Once the names and tags in the page total this many bytes of
   * UTF-8, the store may end the page. A store may ignore the limit, but then its lists may use more memory.
   */
  readonly maxBytes: number
  /** Only plants with an id greater than this are returned. If absent, the page starts with the lowest id. */
  readonly after?: bigint | undefined
}

/** The maximum `limit` of a {@link PageRequest}. Longer lists are read page by page. */
export const MAX_PAGE = 1000

/**
 * The `maxBytes` of every {@link PageRequest} of the service. As JSON, the text of a page may be six times as large
 * (RFC 8259 section 7), and the last plant of the page may be as large as a request body. Even then, a list takes less
 * than 2 MiB of memory.
 */
export const MAX_PAGE_BYTES = 131_072

/** Options of {@link StoreUnavailableError}. */
export interface StoreUnavailableErrorOptions extends ErrorOptions {
  /** Whether the operation might have taken effect, or might still do so. @default false */
  readonly isOutcomeUnknown?: boolean | undefined
}

/** A global symbol, which is the same in every copy of the package and in every realm. */
const BRAND = Symbol.for('plant-store.StoreUnavailableError')

/**
 * Thrown by an unavailable store when a retry might help. The client gets status 503 with `Retry-After`: error
 * 50300, or 50301 if it is unknown whether the request took effect. Only the host's `onError` gets this error and its
 * `cause`.
 */
export class StoreUnavailableError extends Error {
  static {
    // Assigning `name` would throw if the host has frozen `Error.prototype`.
    Object.defineProperty(this.prototype, 'name', {
      value: 'StoreUnavailableError',
      writable: true,
      configurable: true,
    })
    Object.defineProperty(this.prototype, BRAND, { value: BRAND })
  }

  /**
   * Recognizes errors from other copies of this package too: a store may depend on its own copy, and every bundle
   * contains a copy.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // Check that the value is an error first, because a mock might have every member, and a proxy might throw.
    if (this === StoreUnavailableError) return isNativeError(value) && Reflect.get(value, BRAND) === BRAND
    return Function.prototype[Symbol.hasInstance].call(this, value)
  }

  /** Whether the operation might have taken effect, or might still do so. */
  readonly isOutcomeUnknown: boolean

  /** @param message a message for the host; clients never see it */
  constructor(message?: string, options: StoreUnavailableErrorOptions = {}) {
    super(message, options)
    this.isOutcomeUnknown = readMember(options, 'isOutcomeUnknown') ?? false
  }
}
