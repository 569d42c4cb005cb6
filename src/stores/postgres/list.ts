import { encodePlant } from '../../plants/plant.ts'
import type { Page, PageRequest } from '../../plants/store.ts'
import { PageBuilder } from '../page-builder.ts'
import type { QueryResult } from './pool.ts'
import {
  LARGE_BYTES,
  LIST_AFTER,
  LIST_FIRST,
  LIST_LARGE_AFTER,
  LIST_LARGE_FIRST,
  type Statement,
} from './statements.ts'

/** What the database sends of a plant; both texts are null if it holds them back. */
type PlantRow = readonly [id: string, name: string | null, tag: string | null]

/** Sends a statement. */
export type Send = (statement: Statement, values: unknown[]) => Promise<QueryResult>

/**
 * Reads pages. Most are of small plants and take a statement that counts no bytes. If a plant is large, another one has
 * the server cut the page, so that nothing is sent of the plants behind it.
 */
export function createPageReader(send: Send): (owner: string, request: PageRequest) => Promise<Page> {
  // After a page with large plants there mostly comes another.
  let isLarge = false

  return async (owner, request) => {
    const { limit, maxBytes, after } = request
    const cursor = after === undefined ? [] : [String(after)]
    let builder: PageBuilder | undefined
    if (!isLarge) {
      const { rows } = await send(after === undefined ? LIST_FIRST : LIST_AFTER, [owner, limit, ...cursor])
      builder = buildPage(request, rows as readonly PlantRow[])
    }
    if (builder === undefined) {
      const statement = after === undefined ? LIST_LARGE_FIRST : LIST_LARGE_AFTER
      const { rows } = await send(statement, [owner, limit, maxBytes, ...cursor])
      builder = buildPage(request, rows as readonly PlantRow[])!
    }
    isLarge = builder.isHeavy || builder.plants.some(({ json }) => json.length >= LARGE_BYTES)
    return builder.plants
  }
}

/** @returns undefined if a plant of the page was held back */
function buildPage(request: PageRequest, rows: readonly PlantRow[]): PageBuilder | undefined {
  const builder = new PageBuilder(request)
  for (const [text, name, tag] of rows) {
    if (name === null) return undefined
    const id = BigInt(text)
    // Encoded here, so that the requests that share a page need not each do so.
    if (!builder.add(id, encodePlant(tag === null ? { id, name } : { id, name, tag }))) break
  }
  return builder
}
