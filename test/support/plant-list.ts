import { MAX_PAGE, type Page } from '../../src/index.ts'

/** Creates a full page of plants after a cursor. `hasMore` is always true. */
export function createPageAfter(after = 0n, { name = 'Fern', limit = MAX_PAGE } = {}): Page {
  const plants = Array.from({ length: limit }, (_, i) => ({ id: after + BigInt(i) + 1n, name }))
  return { plants, hasMore: true }
}

export const EMPTY_PAGE: Page = { plants: [], hasMore: false }
