import { waitForTick } from '../scheduler.ts'
import { chain, type MaybePromise } from '../maybe-promise.ts'
import type { CheckedStore } from './checked-store.ts'
import type { EncodedPage } from './encoded-list.ts'
import type { ListLimiter, ListContext } from './list-limiter.ts'
import { closeObject, encodeFields, type NewPlant } from './plant.ts'
import { MAX_PAGE, MAX_PAGE_BYTES } from './store.ts'
import { IdSnapshot } from './id-snapshot.ts'

export interface ListQuery {
  /** The maximum number of plants; Infinity if there is no limit. */
  readonly limit: number
  readonly after: bigint | undefined
  readonly includesId: boolean
}

export interface ListRequest extends ListQuery, ListContext {
  readonly store: Pick<CheckedStore, 'list'>
  readonly listLimiter: ListLimiter
}

export interface ListResult {
  /** The JSON array in UTF-8, with one character per byte. It is streamed in chunks if it doesn't fit in one page. */
  readonly body: string | AsyncIterable<string>
  /** The id of the last plant in the list; undefined if the owner has no plants after it. */
  readonly cursor: bigint | undefined
}

/** V8's largest small integer (Smi). */
const MAX_SMALL_INTEGER = 2n ** 31n - 1n
const CHUNK_BYTES = 65_536

/** Lists plants. No matter how long the list is, at most two store pages and one chunk of text are kept in memory. */
export function listPlants(list: ListRequest): MaybePromise<ListResult> {
  if (list.limit === 0) return { body: '[]', cursor: undefined }
  return chain(readPage(list, list.limit, list.after), createListResult, list)
}

const readPage = ({ owner, store }: ListRequest, limit: number, after: bigint | undefined): MaybePromise<EncodedPage> =>
  store.list(owner, { limit: Math.min(limit, MAX_PAGE), maxBytes: MAX_PAGE_BYTES, after })

function createListResult(page: EncodedPage, list: ListRequest): MaybePromise<ListResult> {
  const { plants, hasMore } = page
  const { limit, includesId } = list
  if (!hasMore || plants.length === limit) {
    return { body: encodePage(page, includesId), cursor: hasMore ? plants.at(-1)!.id : undefined }
  }
  if (limit === Infinity) return { body: encodePages(readPages(list, page), includesId), cursor: undefined }
  return listInTwoPasses(list, page)
}

/**
 * Reads up to `limit` plants page by page, after acquiring a slot.
 * @param first the first page, if it was already read; dropped to save memory if the list has to wait for a slot
 */
async function* readPages(list: ListRequest, first?: EncodedPage): AsyncGenerator<EncodedPage> {
  const { owner, listLimiter, client } = list
  let { limit, after } = list
  const pendingSlot = listLimiter.acquire(list)
  if (pendingSlot !== undefined) {
    first = undefined
    if (!(await pendingSlot)) return
  }
  try {
    for (let hasMore = true; hasMore && limit > 0 && !listLimiter.clients.isClosed(client);) {
      const page = first ?? (await readNextPage(list, limit, after))
      first = undefined
      yield page
      limit -= page.plants.length
      after = page.plants.at(-1)?.id
      hasMore = page.hasMore
    }
  } finally {
    listLimiter.release(owner)
  }
}

/** Yields to the event loop before it reads, so that a long list doesn't delay other requests. */
async function readNextPage(list: ListRequest, limit: number, after: bigint | undefined): Promise<EncodedPage> {
  await waitForTick()
  return readPage(list, limit, after)
}

/**
 * Reads the list twice: first for the ids, because the `Link` header precedes the body and contains the last id, and
 * then for the plants. If the ids would take too much memory, the list is cut short.
 */
async function listInTwoPasses(list: ListRequest, first: EncodedPage): Promise<ListResult> {
  const ids = new IdSnapshot()
  let isTruncated = false
  for await (const { plants, hasMore } of readPages(list, first)) {
    const areAllAdded = plants.every(({ id }) => ids.add(id))
    isTruncated = hasMore || !areAllAdded
    if (!areAllAdded) break
  }
  return {
    body: encodePages(readSnapshotPages(list, ids), list.includesId),
    cursor: isTruncated ? ids.lastId : undefined,
  }
}

/**
 * Reads the plants in the snapshot, and skips plants that were created after the snapshot. Otherwise the list would
 * exceed its limit, or its last plants would be dropped although the next page begins after them.
 */
async function* readSnapshotPages(list: ListRequest, ids: IdSnapshot): AsyncGenerator<EncodedPage> {
  const snapshotIds = ids[Symbol.iterator]()
  let nextId = snapshotIds.next()
  for await (const { plants, hasMore } of readPages({ ...list, limit: Infinity })) {
    const isInSnapshot = ({ id }: Pick<NewPlant, 'id'>): boolean => {
      while (nextId.done !== true && nextId.value < id) nextId = snapshotIds.next()
      const isMatch = nextId.value === id
      if (isMatch) nextId = snapshotIds.next()
      return isMatch
    }
    yield { plants: plants.filter(isInSnapshot), hasMore }
    if (nextId.done === true) return
  }
}

async function* encodePages(
  pages: AsyncIterable<EncodedPage> | Iterable<EncodedPage>,
  includesId: boolean,
): AsyncGenerator<string> {
  let prefix = '['
  for await (const page of pages) {
    const { length } = page.plants
    for (let start = 0; start < length;) {
      const { text, end } = encodePlants(page, start, CHUNK_BYTES, includesId)
      yield prefix + text
      prefix = end < length ? '' : ','
      start = end
    }
  }
  yield prefix === '[' ? '[]' : ']'
}

/** Encodes a list of a single page. Long text is streamed in chunks, because a store may return pages of any size. */
function encodePage(page: EncodedPage, includesId: boolean): ListResult['body'] {
  const { text } = encodePlants(page, 0, MAX_PAGE_BYTES, includesId)
  return text.length < MAX_PAGE_BYTES ? `[${text}]` : encodePages([page], includesId)
}

/**
 * Encodes plants of a page, from index `start` until the text is at least `maxBytes` long. Returns the text and the
 * index of the next plant. Unless the text reaches the end of the page, it ends with the opening brace of the next
 * plant. For example, three plants may result in these two strings:
 *
 *     {"name":"Fern"},{"name":"Aloe"},{
 *     "name":"Ivy"}
 */
function encodePlants({ plants }: EncodedPage, start: number, maxBytes: number, includesId: boolean) {
  const { length } = plants
  let text = start === 0 && length > 0 ? '{' : ''
  let end = start
  for (; end < length && text.length < maxBytes; end++) {
    const plant = plants[end]!
    if (includesId) {
      // Three appends, because a template literal would create another string for each plant.
      text += '"id":'
      text += formatId(plant.id)
      text += ','
    }
    const json = encodeFields(plant)
    text += end + 1 < length ? json : closeObject(json)
  }
  return { text, end }
}

/** Formats an id. V8 takes twice as long to format a bigint as it does to format a small integer. */
const formatId = (id: bigint): string => String(id >= 0n && id <= MAX_SMALL_INTEGER ? Number(id) : id)
