/**
 * A client of the service, for Node, browsers, Bun, Deno and workers. It needs nothing but `fetch`.
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
   * The bearer token, or a function that returns it, for tokens that expire. The function is called before each attempt,
   * and once more if the service rejects the token (401). If it throws, the call rejects with the same error.
   */
  readonly token: string | (() => string | Promise<string>)
  /** Sends the requests, for example to log them. @default globalThis.fetch */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Timeout of each attempt, in milliseconds. @default 20_000 */
  readonly timeoutMs?: number | undefined
  /** How often a failed request is retried, if a retry can help. @default 4 */
  readonly retries?: number | undefined
  /** Additional header fields of all requests. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** The options of every call. */
export interface CallOptions {
  /** Cancels the call, which then rejects with the reason of the signal. A write could have taken effect. */
  readonly signal?: AbortSignal | undefined
}

/** Selects the plants of a list. */
export interface ListOptions extends CallOptions {
  /** The maximum number of plants. @default Infinity for `list`, 500 for `listPage` */
  readonly limit?: number | undefined
  /** Selects plants with a greater id. */
  readonly after?: bigint | number | undefined
}

/** One page of a list. */
export interface PlantPage {
  /** Plants in ascending order of id. There can be fewer than `limit`, even if there is another page. */
  readonly plants: readonly ListedPlant[]
  /** The value of `after` that selects the next page, or undefined if there is none. */
  readonly next: bigint | undefined
}

/** Creates, lists and deletes the plants of the token's owner. */
export interface PlantClient {
  /**
   * Creates a plant. If the response to an attempt is lost, the client retries, and compares the existing plant if its
   * id is in use by then.
   * @throws PlantStoreError 40900 if the id is in use, 40002 if the plant is invalid, or another error
   * @throws RangeError if the id is a number that isn't a safe integer
   */
  create(plant: NewPlant, options?: CallOptions): Promise<void>
  /**
   * Deletes a plant. If the response to an attempt is lost, the client retries, and the call also succeeds if the plant
   * is missing by then.
   * @throws PlantStoreError 40401 if the plant doesn't exist, or another error
   * @throws RangeError if the id is a number that isn't a safe integer
   */
  delete(id: bigint | number, options?: CallOptions): Promise<void>
  /**
   * Yields plants in ascending order of id. Requests one page at a time, when the plants of the previous page have been
   * consumed, so the list can have any length.
   * @throws PlantStoreError if a page can't be read; the plants that were yielded before are correct
   */
  list(options?: ListOptions): AsyncGenerator<ListedPlant, void, undefined>
  /**
   * Returns one page of a list, for user interfaces in which users turn the pages.
   * @throws PlantStoreError if the page can't be read
   */
  listPage(options?: ListOptions): Promise<PlantPage>
}

/**
 * The number of plants that `list` requests at a time: few enough to keep in memory, and fewer than a store returns at a
 * time, so that each page costs the service a single query.
 */
const PAGE_SIZE = 500
const MIN_ID = -(2n ** 63n)

/**
 * Creates a client of the service.
 * @throws TypeError if `url` isn't an absolute URL, or if `token` or `headers` can't be sent in a header
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
        // A cursor that doesn't advance would repeat plants, perhaps forever.
        const isNextValid = next === undefined || (isAfter(next) && plants.every(({ id }) => id <= next))
        return isNextValid ? { plants, next } : undefined
      },
    })
  }

  /** @throws TypeError or SyntaxError if the link isn't one of the service */
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
        // An earlier attempt could have created this plant. So could another client, with other content.
        const after = id === MIN_ID ? undefined : id - 1n
        const { plants } = await readPage({ limit: 1, after, signal }, true)
        // Even if another plant has the id by now, an attempt without a response can still arrive later.
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
      for (let remaining = limit, cursor = after; ;) {
        const pageLimit = Math.min(remaining, PAGE_SIZE)
        const { plants, next } = await readPage({ limit: pageLimit, after: cursor, signal })
        for (const plant of plants) {
          signal?.throwIfAborted()
          yield plant
        }
        remaining -= plants.length
        // Browsers hide `Link` from pages of other origins unless CORS exposes it. A full page may not be the last one.
        cursor = next ?? (plants.length === pageLimit ? plants.at(-1)?.id : undefined)
        if (cursor === undefined || remaining <= 0) return
      }
    },

    async listPage(pageOptions = {}) {
      return readPage(pageOptions)
    },
  }
}
