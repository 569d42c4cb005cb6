import { setImmediate } from 'node:timers/promises'
import type { CheckedStore } from './checked-store.ts'
import { encodePlant, encodingOf } from './plant.ts'
import { MAX_PAGE, MAX_PAGE_BYTES, then, type MaybePromise, type Page } from './store.ts'

export interface ListQuery {
  /** The maximum number of plants; Infinity for the whole list. */
  readonly limit: number
  readonly after: bigint | undefined
  readonly includesId: boolean
}

export interface ListResult {
  /** The JSON array, or its parts if the list doesn't fit in one store page. */
  readonly body: string | AsyncIterable<string>
  /** The size of the body, if the store knows the sizes of its plants. */
  readonly bytes?: number | undefined
  /** The id after which the next page starts; undefined if the list is complete. */
  readonly cursor: bigint | undefined
}

/** Lists plants. A limited list is at most one store page; a whole list is read page by page while it is sent. */
export function listPlants(store: CheckedStore, owner: string, query: ListQuery): MaybePromise<ListResult> {
  const { limit, after, includesId } = query
  if (limit === 0) return { body: '[]', cursor: undefined }
  const readPage = (cursor: bigint | undefined): MaybePromise<Page> =>
    store.list(owner, { limit: Math.min(limit, MAX_PAGE), maxBytes: MAX_PAGE_BYTES, after: cursor })

  return then(readPage(after), (page) => {
    const cursor = page.hasMore ? page.plants.at(-1)?.id : undefined
    if (cursor !== undefined && limit === Infinity) {
      return { body: encodePages(page, readPage, includesId), cursor: undefined }
    }
    return { body: `[${encodePage(page, includesId)}]`, bytes: includesId ? undefined : sizeOf(page), cursor }
  })
}

async function* encodePages(first: Page, readPage: (after: bigint) => MaybePromise<Page>, includesId: boolean) {
  yield `[${encodePage(first, includesId)}`
  for (let page = first; page.hasMore && page.plants.length > 0;) {
    // A long list must not delay other requests.
    await setImmediate()
    page = await readPage(page.plants.at(-1)!.id)
    if (page.plants.length > 0) yield `,${encodePage(page, includesId)}`
  }
  yield ']'
}

/** Returns the size of a page as a JSON array. Counting its bytes would take 4% of the time of a list of ten. */
function sizeOf({ plants }: Page): number | undefined {
  let bytes = '[]'.length + Math.max(0, plants.length - 1)
  for (const plant of plants) bytes += encodingOf(plant)?.bytes ?? NaN
  return Number.isNaN(bytes) ? undefined : bytes
}

function encodePage({ plants }: Page, includesId: boolean): string {
  let text = ''
  for (const plant of plants) {
    if (text !== '') text += ','
    text += encodePlant(plant, includesId)
  }
  return text
}
