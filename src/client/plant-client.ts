/**
 * A client for the service that runs in Node, browsers, Bun, Deno and workers. It requires only `fetch`.
 * @module plant-store/client
 */

import { encodePlant, parsePlants, toExactId, type ListedPlant, type NewPlant } from './plant-json.ts'
import { PlantStoreError } from './plant-store-error.ts'
import { createRequestSender } from './request-sender.ts'

export { PlantStoreError, type ListedPlant, type NewPlant }

/** The options of {@link createPlantClient}. */
export interface PlantClientOptions {
  /** The URL of the service, without `/plants`, such as `https://plants.example/api`. */
  readonly url: string | URL
  /**
   * The bearer token or, for tokens that expire, a function that returns the current token. The function is called
   * before each attempt, and once more if the service rejects the token (401). If the function throws, the call rejects
   * with the same error.
   */
  readonly token: string | (() => string | Promise<string>)
  /** Sends the requests, for example to log them. @default globalThis.fetch */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Timeout of each attempt, in milliseconds. @default 20_000 */
  readonly timeoutMs?: number | undefined
  /** How many times to retry a request that failed for a temporary reason. @default 4 */
  readonly retries?: number | undefined
  /** Additional header fields for all requests. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

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
const MIN_ID = -(2n ** 63n)

/**
 * Creates a client for the service.
 * @throws TypeError if `url` isn't an absolute URL, or if `token` or `headers` are malformed
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
  const { url, token, fetch, timeoutMs = 20_000, retries = 4, headers } = options
  if (!URL.canParse(String(url))) throw new TypeError('url must be an absolute URL, such as https://plants.example/')
  const baseUrl = new URL(url)
  baseUrl.pathname = baseUrl.pathname.replace(/\/?$/, '/')
  const send = createRequestSender({ baseUrl, token, fetch, timeoutMs, retries, headers })

  function readPage({ limit = PAGE_SIZE, after, signal }: ListOptions, isOutcomeUnknown = false): Promise<PlantPage> {
    const cursor = after === undefined ? undefined : toExactId(after)
    const isAfter = (id: bigint): boolean => cursor === undefined || id > cursor
    const query = `limit=${limit}${cursor === undefined ? '' : `&after=${cursor}`}&include=id`
    return send({
      method: 'GET',
      path: `plants?${query}`,
      signal,
      isOutcomeUnknown,
      read(text, response) {
        const plants = parsePlants(text)
        if (plants === undefined || plants.length > limit || plants.some(({ id }) => !isAfter(id))) return undefined
        const next = parseNextLink(response.headers.get('Link') ?? '')
        // If the cursor didn't advance, `list` would yield the same plants again, possibly forever.
        const isNextValid = next === undefined || (isAfter(next) && plants.every(({ id }) => id <= next))
        return isNextValid ? { plants, next } : undefined
      },
    })
  }

  /** @throws TypeError or SyntaxError if the link can't have come from the service */
  function parseNextLink(header: string): bigint | undefined {
    const [, reference] = /<([^<>]*)>[^<]*;\s*rel="?next\b/i.exec(header) ?? []
    if (reference === undefined) return undefined
    const { origin, searchParams } = new URL(reference, baseUrl)
    const after = searchParams.get('after')
    if (!after || origin !== baseUrl.origin) throw new TypeError('the service sends no such link')
    return BigInt(after)
  }

  return {
    async create(plant, { signal } = {}) {
      const { name, tag } = plant
      const id = toExactId(plant.id)
      try {
        await send({
          method: 'POST',
          path: 'plants',
          body: encodePlant(id, plant),
          signal,
          read: (text) => {
            const created = JSON.parse(text) as Partial<NewPlant>
            return (created.name === name && created.tag === tag) || undefined
          },
        })
      } catch (error) {
        if (!(error instanceof PlantStoreError && error.error === 40900 && error.isOutcomeUnknown)) throw error
        // Either an earlier attempt created this plant, or the id belongs to a different plant.
        const after = id === MIN_ID ? undefined : id - 1n
        const { plants } = await readPage({ limit: 1, after, signal }, true)
        // If the id belongs to a different plant, the outcome is still unknown: an earlier attempt may yet reach the
        // service.
        if (!plants.some((plant) => plant.id === id && plant.name === name && plant.tag === tag)) throw error
      }
    },

    async delete(id, { signal } = {}) {
      try {
        await send({ method: 'DELETE', path: `plants/${toExactId(id)}`, signal, read: () => true })
      } catch (error) {
        if (!(error instanceof PlantStoreError && error.error === 40401 && error.isOutcomeUnknown)) throw error
      }
    },

    async *list({ limit = Infinity, after, signal } = {}) {
      let remaining = limit
      let cursor = after
      do {
        const pageLimit = Math.min(remaining, PAGE_SIZE)
        const { plants, next } = await readPage({ limit: pageLimit, after: cursor, signal })
        for (const plant of plants) {
          signal?.throwIfAborted()
          yield plant
        }
        remaining -= plants.length
        // A missing `Link` header doesn't mean that the list has ended: browsers hide the header from scripts of other
        // origins unless CORS exposes it. So as long as responses contain as many plants as requested, keep going.
        cursor = next ?? (plants.length === pageLimit ? plants.at(-1)?.id : undefined)
      } while (cursor !== undefined && remaining > 0)
    },

    async listPage(pageOptions = {}) {
      return readPage(pageOptions)
    },
  }
}
