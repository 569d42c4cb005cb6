import { MAX_PAGE, type Page, type PageRequest } from '../../../src/index.ts'
import type { MaybePromise } from '../../../src/maybe-promise.ts'
import { ListLimiter } from '../../../src/plants/list-limiter.ts'
import type { ListQuery, ListRequest } from '../../../src/plants/list-plants.ts'

/**
 * Creates a request for a list of ada's plants. No other lists are waiting, and the client never disconnects.
 * @param query overrides; by default, all plants are requested
 */
export function createPlantList(
  readPage: (request: PageRequest) => MaybePromise<Page>,
  query?: Partial<ListQuery>,
): ListRequest {
  const limiter = new ListLimiter(1, 60_000, { isClosed: () => false, onClose: () => undefined })
  const store = { list: (_: string, request: PageRequest) => readPage(request) }
  return {
    owner: 'ada',
    client: undefined,
    store,
    listLimiter: limiter,
    limit: Infinity,
    after: undefined,
    includesId: false,
    ...query,
  }
}

/** Creates a full page of plants after a cursor. `hasMore` is always true. */
export function createPageAfter(after = 0n, { name = 'Fern', limit = MAX_PAGE } = {}): Page {
  const plants = Array.from({ length: limit }, (_, i) => ({ id: after + BigInt(i) + 1n, name }))
  return { plants, hasMore: true }
}

export const EMPTY_PAGE: Page = { plants: [], hasMore: false }
