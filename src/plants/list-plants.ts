import { waitForTick } from '../scheduler.ts'
import { chain, type MaybePromise } from '../maybe-promise.ts'
import type { CheckedStore } from './checked-store.ts'
import type { EncodedPage } from './encoded-list.ts'
import type { ListLimiter, ListContext } from './list-limiter.ts'
import { closeObject, encodeFields, type NewPlant } from './plant.ts'
import { MAX_PAGE, MAX_PAGE_BYTES } from './store.ts'
import { IdSnapshot } from './id-snapshot.ts'

export interface ListQuery {
  /** At most this many; Infinity if there is no limit. */
  readonly limit: number
  readonly after: bigint | undefined
  readonly includesId: boolean
}

export interface ListRequest extends ListQuery, ListContext {
  readonly store: Pick<CheckedStore, 'list'>
  readonly listLimiter: ListLimiter
}

export interface ListResult {
  /** The JSON array in UTF-8, one character for each byte: whole if it fits a page, else piece by piece. */
  readonly body: string | AsyncIterable<string>
  /** The id of the last plant of the list; undefined if no plants follow it. */
  readonly cursor: bigint | undefined
}

/** The greatest small integer of V8. */
const MAX_SMALL_INTEGER = 2n ** 31n - 1n
const CHUNK_BYTES = 65_536

/** Lists plants. A page or two and a piece of text are in memory at once, however long the list and its texts are. */
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

/** Reads up to `limit` plants, once there is a slot. If it has to wait for one, it doesn't keep `first`. */
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

/** Reads in another round of the event loop, so that a long list does not hold up other requests. */
async function readNextPage(list: ListRequest, limit: number, after: bigint | undefined): Promise<EncodedPage> {
  await waitForTick()
  return readPage(list, limit, after)
}

/** In two passes: the header says where the next list begins. If the ids are too many to keep, this is cut short. */
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

/** Reads the surveyed plants. One created since would make the list too long, or push out one that no other list holds. */
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

/** The list of a single page: piece by piece if its text is long, because a store can return a page of any size. */
function encodePage(page: EncodedPage, includesId: boolean): ListResult['body'] {
  const { text } = encodePlants(page, 0, MAX_PAGE_BYTES, includesId)
  return text.length < MAX_PAGE_BYTES ? `[${text}]` : encodePages([page], includesId)
}

/**
 * Encodes plants of a page, up to the one that makes the text `maxBytes` long, and returns the index after that plant.
 * Before the end of the page, the text ends with the next plant's opening brace, and the next text continues there.
 */
function encodePlants({ plants }: EncodedPage, start: number, maxBytes: number, includesId: boolean) {
  const { length } = plants
  let text = start === 0 && length > 0 ? '{' : ''
  let end = start
  for (; end < length && text.length < maxBytes; end++) {
    const plant = plants[end]!
    if (includesId) {
      // Several steps: one with a template would make a string more for each plant.
      text += '"id":'
      text += formatId(plant.id)
      text += ','
    }
    const json = encodeFields(plant)
    text += end + 1 < length ? json : closeObject(json)
  }
  return { text, end }
}

/** The digits of an id. V8 takes twice as long for those of a bigint as for those of a small integer. */
const formatId = (id: bigint): string => String(id >= 0n && id <= MAX_SMALL_INTEGER ? Number(id) : id)
