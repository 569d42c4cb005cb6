import { laterRound } from '../later-round.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { CheckedStore } from './checked-store.ts'
import type { EncodedPage } from './encoded-list.ts'
import type { ListSlots, LongList } from './list-slots.ts'
import { closeRest, encodeRest, type NewPlant } from './plant.ts'
import { MAX_PAGE, MAX_PAGE_BYTES } from './store.ts'
import { SurveyedIds } from './surveyed-ids.ts'

export interface ListQuery {
  /** At most this many; Infinity if there is no limit. */
  readonly limit: number
  readonly after: bigint | undefined
  readonly includesId: boolean
}

export interface PlantList extends ListQuery, LongList {
  readonly store: Pick<CheckedStore, 'list'>
  readonly slots: ListSlots
}

export interface Listing {
  /** The JSON array in UTF-8, one character for each byte: whole if it fits a page, else piece by piece. */
  readonly body: string | AsyncIterable<string>
  /** The id of the last plant of the list; undefined if no plants follow it. */
  readonly cursor: bigint | undefined
}

/** The greatest small integer of V8. */
const MAX_SMALL = 2n ** 31n - 1n
const PIECE_BYTES = 65_536

/** Lists plants. A page or two and a piece of text are in memory at once, however long the list and its texts are. */
export function listPlants(list: PlantList): MaybePromise<Listing> {
  if (list.limit === 0) return { body: '[]', cursor: undefined }
  return andThen(readPage(list, list.limit, list.after), listFrom, list)
}

const readPage = ({ owner, store }: PlantList, limit: number, after: bigint | undefined): MaybePromise<EncodedPage> =>
  store.list(owner, { limit: Math.min(limit, MAX_PAGE), maxBytes: MAX_PAGE_BYTES, after })

function listFrom(page: EncodedPage, list: PlantList): MaybePromise<Listing> {
  const { plants, hasMore } = page
  const { limit, includesId } = list
  if (!hasMore || plants.length === limit) {
    return { body: encodePage(page, includesId), cursor: hasMore ? plants.at(-1)!.id : undefined }
  }
  if (limit === Infinity) return { body: encodePages(readPages(list, page), includesId), cursor: undefined }
  return listSurveyed(list, page)
}

/** Reads up to `limit` plants, once there is a slot. If it has to wait for one, it doesn't keep `first`. */
async function* readPages(list: PlantList, first?: EncodedPage): AsyncGenerator<EncodedPage> {
  const { owner, slots, client } = list
  let { limit, after } = list
  const waiting = slots.take(list)
  if (waiting !== undefined) {
    first = undefined
    if (!(await waiting)) return
  }
  try {
    for (let hasMore = true; hasMore && limit > 0 && !slots.clients.isGone(client);) {
      const page = first ?? (await readNext(list, limit, after))
      first = undefined
      yield page
      limit -= page.plants.length
      after = page.plants.at(-1)?.id
      hasMore = page.hasMore
    }
  } finally {
    slots.release(owner)
  }
}

/** Reads in another round of the event loop, so that a long list does not hold up other requests. */
async function readNext(list: PlantList, limit: number, after: bigint | undefined): Promise<EncodedPage> {
  await laterRound()
  return readPage(list, limit, after)
}

/** In two passes: the header says where the next list begins. If the ids are too many to keep, this is cut short. */
async function listSurveyed(list: PlantList, first: EncodedPage): Promise<Listing> {
  const ids = new SurveyedIds()
  let isCut = false
  for await (const { plants, hasMore } of readPages(list, first)) {
    const isKept = plants.every(({ id }) => ids.add(id))
    isCut = hasMore || !isKept
    if (!isKept) break
  }
  return { body: encodePages(surveyedPages(list, ids), list.includesId), cursor: isCut ? ids.last : undefined }
}

/** Reads the surveyed plants. One created since would make the list too long, or push out one that no other list holds. */
async function* surveyedPages(list: PlantList, ids: SurveyedIds): AsyncGenerator<EncodedPage> {
  const surveyed = ids[Symbol.iterator]()
  let wanted = surveyed.next()
  for await (const { plants, hasMore } of readPages({ ...list, limit: Infinity })) {
    const isSurveyed = ({ id }: Pick<NewPlant, 'id'>): boolean => {
      while (wanted.done !== true && wanted.value < id) wanted = surveyed.next()
      const isWanted = wanted.value === id
      if (isWanted) wanted = surveyed.next()
      return isWanted
    }
    yield { plants: plants.filter(isSurveyed), hasMore }
    if (wanted.done === true) return
  }
}

async function* encodePages(
  pages: AsyncIterable<EncodedPage> | Iterable<EncodedPage>,
  includesId: boolean,
): AsyncGenerator<string> {
  let opening = '['
  for await (const page of pages) {
    const { length } = page.plants
    for (let at = 0; at < length;) {
      const { text, end } = encodePlants(page, at, PIECE_BYTES, includesId)
      yield opening + text
      opening = end < length ? '' : ','
      at = end
    }
  }
  yield opening === '[' ? '[]' : ']'
}

/** The list of a single page: piece by piece if its text is long, because a store can return a page of any size. */
function encodePage(page: EncodedPage, includesId: boolean): Listing['body'] {
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
      text += toDigits(plant.id)
      text += ','
    }
    const rest = encodeRest(plant)
    text += end + 1 < length ? rest : closeRest(rest)
  }
  return { text, end }
}

/** The digits of an id. V8 takes twice as long for those of a bigint as for those of a small integer. */
const toDigits = (id: bigint): string => String(id >= 0n && id <= MAX_SMALL ? Number(id) : id)
