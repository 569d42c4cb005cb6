/**
 * A client for the service that runs in Node, browsers, Bun, Deno and workers. It requires only `fetch`.
 * @module plant-store/client
 */

import { check, checkNames, isCount, type PlantClientOptions } from './client-options.ts'
import { encodePlant, isSamePlant, parsePlants, toExactId, type ListedPlant, type NewPlant } from './plant-json.ts'
import { createRequestSender, PlantStoreError, throwIfAborted } from './request-sender.ts'

export { PlantStoreError, type ListedPlant, type NewPlant, type PlantClientOptions }

/** The options of every call. */
export interface CallOptions {
  /** Cancels the call, which then rejects with the signal's reason. A canceled write may still take effect. */
  readonly signal?: AbortSignal | undefined
}

/** Selects which plants to list. */
export interface ListOptions extends CallOptions {
  /** The maximum number of plants. @default Infinity for `list`, 500 for `listPage` */
  readonly limit?: number | undefined
  /** Lists only plants whose id is greater than this one. */
  readonly after?: bigint | number | undefined
}

/** One page of a list. */
export interface PlantPage {
  /** Plants in ascending order of id. There may be fewer than `limit`, even if this isn't the last page. */
  readonly plants: readonly ListedPlant[]
  /** The `after` value for the next page, or undefined if this is the last page. */
  readonly next: bigint | undefined
}

/** Creates, lists and deletes the plants of the token's owner. */
export interface PlantClient {
  /**
   * Creates a plant. If the response to an attempt is lost, the client retries. If the id is already in use by then,
   * the client compares the existing plant with the new one, and the call succeeds if they are identical.
   * @throws PlantStoreError if the call fails: with error 40900 if the id is in use, or 40002 if the plant is invalid
   * @throws RangeError if the id is a number that isn't a safe integer
   */
  create(plant: NewPlant, options?: CallOptions): Promise<void>
  /**
   * Deletes a plant. If the response to an attempt is lost, the client retries, and the call succeeds even if the plant
   * no longer exists by then.
   * @throws PlantStoreError if the call fails: with error 40401 if the plant doesn't exist
   * @throws RangeError if the id is a number that isn't a safe integer
   */
  delete(id: bigint | number, options?: CallOptions): Promise<void>
  /**
   * Yields plants in ascending order of id. Each page is requested only after the plants of the previous page have been
   * consumed, so the list can be of any length.
   * @throws PlantStoreError if a page can't be read; the plants already yielded are correct
   */
  list(options?: ListOptions): AsyncGenerator<ListedPlant, void, undefined>
  /**
   * Returns one page of a list, for user interfaces with page-by-page navigation.
   * @throws PlantStoreError if the page can't be read
   */
  listPage(options?: ListOptions): Promise<PlantPage>
}

/**
 * The number of plants that `list` requests at a time: few enough to keep in memory, and below a store's maximum page
 * size, so that the service needs only one query per page.
 */
const PAGE_SIZE = 500
const MIN_ID = -9223372036854775808n
/** The largest `limit` that the service accepts. */
const MAX_LIMIT = 0x7fffffff

/**
 * Creates a client for the service.
 * @throws TypeError if an option is invalid or unknown, or if the URL can't work
 *
 * @example
 * import { createPlantClient } from 'plant-store/client'
 *
 * const plants = createPlantClient({ url: 'https://plants.example/', token: 'a-long-random-token' })
 * await plants.create({ id: 9007199254740993n, name: 'Fern', tag: 'indoor' })
 * for await (const plant of plants.list({ after: 41n })) console.log(plant.id, plant.name)
 * await plants.delete(9007199254740993n)
 */
export function createPlantClient(options: PlantClientOptions): PlantClient {
  checkNames(options, ['url', 'token', 'fetch', 'timeoutMs', 'retries', 'headers'])
  const send = createRequestSender(options)
  // Browsers hide the `Link` header from scripts of other origins unless CORS exposes it, and proxies can remove it. Until
  // a response shows one, only an empty page proves that a list has ended.
  let canSeeLinks = false

  interface PageRequest {
    /** Is halved each time the page takes too long to arrive. */
    limit: number
    after?: bigint | number | undefined
    readonly signals: readonly (AbortSignal | undefined)[]
    readonly isOutcomeUnknown?: boolean
  }

  async function readPage(page: PageRequest): Promise<PlantPage> {
    const after = page.after === undefined ? undefined : toExactId(page.after)
    return send({
      ...page,
      method: 'GET',
      path: () => `plants?limit=${page.limit}${after === undefined ? '' : `&after=${after}`}&include=id`,
      onBodyTimeout: () => (page.limit = Math.ceil(page.limit / 2)),
      read(text, link) {
        const plants = parsePlants(text, after)
        if (plants === undefined || plants.length > page.limit) return undefined
        const hasNextLink = /;\s*rel\s*=\s*"?next\b/i.test(link ?? '')
        canSeeLinks ||= hasNextLink
        return { plants, next: hasNextLink || !canSeeLinks ? plants.at(-1)?.id : undefined }
      },
    })
  }

  /** @param end ends the list, even while a page is on its way */
  async function* list(options: ListOptions, end: AbortSignal): AsyncGenerator<ListedPlant, void, undefined> {
    checkListOptions(options)
    const request: PageRequest = { limit: PAGE_SIZE, after: options.after, signals: [options.signal, end] }
    let remaining = options.limit ?? Infinity
    do {
      request.limit = Math.min(request.limit, remaining)
      const page = await readPage(request).catch((error: unknown) => {
        if (!end.aborted) throw error
      })
      if (page === undefined) return
      for (const plant of page.plants) {
        throwIfAborted(request.signals)
        yield plant
      }
      remaining -= page.plants.length
      request.after = page.next
    } while (request.after !== undefined && remaining > 0)
  }

  return {
    async create(plant, { signal } = {}) {
      const id = toExactId(plant.id)
      const signals = [signal]
      try {
        await send({
          method: 'POST',
          path: () => 'plants',
          body: encodePlant(id, plant),
          signals,
          read: (text) => isSamePlant(JSON.parse(text) as NewPlant, plant) || undefined,
        })
      } catch (error) {
        if (!(error instanceof PlantStoreError && error.error === 40900 && error.isOutcomeUnknown)) throw error
        // Either an earlier attempt created this plant, or the id belongs to a different plant.
        const after = id === MIN_ID ? undefined : id - 1n
        const { plants } = await readPage({ limit: 1, after, signals, isOutcomeUnknown: true })
        // If the id belongs to a different plant, the outcome is still unknown: an earlier attempt may yet reach the
        // service.
        if (!plants.some((existing) => existing.id === id && isSamePlant(existing, plant))) throw error
      }
    },

    async delete(id, { signal } = {}) {
      try {
        const path = `plants/${toExactId(id)}`
        await send({ method: 'DELETE', path: () => path, signals: [signal], read: () => true })
      } catch (error) {
        if (!(error instanceof PlantStoreError && error.error === 40401 && error.isOutcomeUnknown)) throw error
      }
    },

    list(options = {}) {
      const end = new AbortController()
      const plants = list(options, end.signal)
      // The generator's own methods would wait for the page on its way.
      for (const name of ['return', 'throw'] as const) {
        const method = plants[name].bind(plants)
        plants[name] = (value: unknown) => {
          end.abort()
          return method(value)
        }
      }
      return plants
    },

    async listPage(options = {}) {
      checkListOptions(options)
      const { limit = PAGE_SIZE, after, signal } = options
      return readPage({ limit: Math.min(limit, MAX_LIMIT), after, signals: [signal] })
    },
  }
}

/** @throws TypeError */
function checkListOptions(options: ListOptions): void {
  checkNames(options, ['limit', 'after', 'signal'])
  const { limit } = options
  check(limit === undefined || isCount(limit), 'limit must be a whole number, at least 0, or Infinity')
}
