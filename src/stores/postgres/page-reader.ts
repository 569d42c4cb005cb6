import type { EncodedPage } from '../../plants/encoded-list.ts'
import { MAX_INT64, MIN_INT64 } from '../../plants/int64.ts'
import { encodeFields } from '../../plants/plant.ts'
import type { PageRequest } from '../../plants/store.ts'
import { PageBuilder } from '../page-builder.ts'
import type { QueryResult } from './pool.ts'
import type { StatementSender } from './statement-sender.ts'
import { LARGE_TEXT_BYTES, LIST, LIST_LARGE } from './statements.ts'

/** A plant as the server sends it; both texts are null if it is large. Only LIST_LARGE has `isFollowed`. */
type PlantRow = readonly [id: string, name: string | null, tag: string | null, isFollowed?: 't' | 'f']

/** Reads pages. If a plant is large, another statement lets the server cut the page, so that it sends no more. */
export function createPageReader(
  sender: StatementSender,
): (owner: string, request: PageRequest) => Promise<EncodedPage> {
  // A page with large plants is mostly followed by another one.
  let hasLargePlants = false

  return async (owner, request) => {
    const { limit, maxBytes, after } = request
    if (after === MAX_INT64) return { plants: [], hasMore: false }
    // One more than fits the page shows whether more follow.
    const values = [owner, String(after === undefined ? MIN_INT64 : after + 1n), limit + 1]
    const expiresAt = sender.createDeadline()
    let builder = hasLargePlants ? undefined : buildPage(request, await sender.send(LIST, [...values], expiresAt))
    builder ??= buildPage(request, await sender.send(LIST_LARGE, [...values, maxBytes], expiresAt))!
    hasLargePlants =
      builder.hasReachedMaxBytes || builder.plants.some(({ json: rest }) => rest.length >= LARGE_TEXT_BYTES)
    return builder.page
  }
}

/** Shares a read among callers of equal keys. Who comes during one shares the next: it sees the writes before that. */
export function shareReads<Result>(): (key: string, read: () => Promise<Result>) => Promise<Result> {
  /** When each read has ended, and the one that follows, if anybody waits for it. */
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
    // Encoded here, once for all requests that share the page.
    builder.add(id, encodeFields(tag === null ? { id, name } : { id, name, tag }))
  }
  builder.hasMore = builder.plants.length < plants.length || plants.at(-1)?.[3] === 't'
  return builder
}
