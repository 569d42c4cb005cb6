import type { EncodedPage } from '../../legacy/plants/encoded-list.ts'
import { MAX_INT64, MIN_INT64 } from '../../legacy/plants/int64.ts'
import { encodeFields } from '../../legacy/plants/plant.ts'
import type { PageRequest } from '../../legacy/plants/store.ts'
import { PageBuilder } from '../../legacy/stores/page-builder.ts'
import type { QueryResult } from './pool.ts'
import type { StatementSender } from './statement-sender.ts'
import { LARGE_TEXT_BYTES, LIST, LIST_LARGE } from './statements.ts'

/**
 * A row of LIST or LIST_LARGE. LIST returns null for the name and tag of a large plant; only LIST_LARGE returns
 * `isFollowed`.
 */
type PlantRow = readonly [id: string, name: string | null, tag: string | null, isFollowed?: 't' | 'f']

/**
 * Creates a function that reads pages. If a page contains a large plant, the page is read again with LIST_LARGE, which
 * makes the server end the page at `maxBytes`.
 */
export function createPageReader(
  sender: StatementSender,
): (owner: string, request: PageRequest) => Promise<EncodedPage> {
  // If a page had large plants, the next one probably has some too, so start with LIST_LARGE.
  let hasLargePlants = false

  return async (owner, request) => {
    const { limit, maxBytes, after } = request
    if (after === MAX_INT64) return { plants: [], hasMore: false }
    // One extra row reveals whether there is a next page.
    const values = [owner, String(after === undefined ? MIN_INT64 : after + 1n), limit + 1]
    const expiresAt = sender.createDeadline()
    let builder = hasLargePlants ? undefined : buildPage(request, await sender.send(LIST, [...values], expiresAt))
    builder ??= buildPage(request, await sender.send(LIST_LARGE, [...values, maxBytes], expiresAt))!
    hasLargePlants = builder.hasReachedMaxBytes || builder.plants.some(({ json }) => json.length >= LARGE_TEXT_BYTES)
    return builder.page
  }
}

/**
 * Creates a function that shares reads among callers with the same key. A caller that arrives during a read shares the
 * next read instead, so that its result includes all writes that were acknowledged before the call.
 */
export function shareReads<Result>(): (key: string, read: () => Promise<Result>) => Promise<Result> {
  /**
   * For each key: a promise that resolves when the current read settles, and the result of the next read if any callers
   * are waiting for it.
   */
  const readsInFlight = new Map<string, { readonly settled: Promise<void>; next: Promise<Result> | undefined }>()

  function start(key: string, read: () => Promise<Result>): Promise<Result> {
    const result = read()
    const onSettled = (): void => {
      if (readsInFlight.get(key)!.next === undefined) readsInFlight.delete(key)
    }
    readsInFlight.set(key, { settled: result.then(onSettled, onSettled), next: undefined })
    return result
  }

  return (key, read) => {
    const current = readsInFlight.get(key)
    if (current === undefined) return start(key, read)
    return (current.next ??= current.settled.then(() => start(key, read)))
  }
}

function buildPage(request: PageRequest, { rows }: QueryResult): PageBuilder | undefined {
  const builder = new PageBuilder(request)
  const plants = rows as readonly PlantRow[]
  for (const [idText, name, tag] of plants) {
    if (builder.isFull) break
    if (name === null) return undefined
    const id = BigInt(idText)
    // Encode the plant here, once for all requests that share the page.
    builder.add(id, encodeFields(tag === null ? { id, name } : { id, name, tag }))
  }
  builder.hasMore = builder.plants.length < plants.length || plants.at(-1)?.[3] === 't'
  return builder
}
