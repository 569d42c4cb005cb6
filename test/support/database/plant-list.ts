import { MAX_PAGE, type Page, type PageRequest } from '../../../src/index.ts'
import type { MaybePromise } from '../../../src/maybe-promise.ts'
import { ListSlots } from '../../../src/plants/list-slots.ts'
import type { ListQuery, PlantList } from '../../../src/plants/listing.ts'

/** A list of ada's plants, by default all of them, for which nobody waits, and whose client stays. */
export function plantList(
  readPage: (request: PageRequest) => MaybePromise<Page>,
  query?: Partial<ListQuery>,
): PlantList {
  const slots = new ListSlots(1, 60_000, { isGone: () => false, whenGone: () => undefined })
  const store = { list: (_: string, request: PageRequest) => readPage(request) }
  return {
    owner: 'ada',
    client: undefined,
    store,
    slots,
    limit: Infinity,
    after: undefined,
    includesId: false,
    ...query,
  }
}

/** A page of plants after a cursor; there is always a next one. */
export function pageAfter(after = 0n, { name = 'Fern', limit = MAX_PAGE } = {}): Page {
  const plants = Array.from({ length: limit }, (_, i) => ({ id: after + BigInt(i) + 1n, name }))
  return { plants, hasMore: true }
}

export const EMPTY_PAGE: Page = { plants: [], hasMore: false }
