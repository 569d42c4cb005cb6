import { laterRound } from '../later-round.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { ListSlots, LongList } from './list-slots.ts'
import { closeRest, encodeRest } from './plant.ts'
import { MAX_PAGE, MAX_PAGE_BYTES, type Page, type Store } from './store.ts'
import { SurveyedIds } from './surveyed-ids.ts'

export interface ListQuery {
  /** At most this many; Infinity if there is no limit. */
  readonly limit: number
  readonly after: bigint | undefined
  readonly includesId: boolean
}

export interface PlantList extends ListQuery, LongList {
  readonly store: Pick<Store, 'list'>
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
  return andThen(readPage(list, firstPage(list), list.after), listFrom, list)
}

/** One plant more than wanted shows whether the limit cuts the list short. */
const firstPage = ({ limit }: ListQuery): number => Math.min(limit + 1, MAX_PAGE)

const readPage = ({ owner, store }: PlantList, limit: number, after: bigint | undefined): MaybePromise<Page> =>
  store.list(owner, { limit, maxBytes: MAX_PAGE_BYTES, after })

function listFrom(page: Page, list: PlantList): MaybePromise<Listing> {
  const { limit, after, includesId } = list
  if (page.length > limit) return { body: encodeCut(page, limit, includesId), cursor: page[limit - 1]!.id }
  const body = page.length < firstPage(list) ? encodeWhole(page, page.length, includesId) : undefined
  if (body !== undefined) return { body, cursor: undefined }

  if (limit === Infinity) return { body: encodePages(allPages(list, after, page), includesId), cursor: undefined }
  return page.length < limit ? listSurveyed(list, page) : listPage(list, page)
}

/** Lists a page that may be the last one. */
async function listPage(list: PlantList, page: Page): Promise<Listing> {
  const last = page.at(-1)!.id
  const following = await readPage(list, 1, last)
  const body = encodeCut(page, list.limit, list.includesId)
  return { body, cursor: following.length === 0 ? undefined : last }
}

/** Waits for a slot, and ends once the client has gone. If it has to wait, `first` is not kept, but read again. */
async function* allPages(list: PlantList, after: bigint | undefined, first?: Page): AsyncGenerator<Page> {
  const { owner, slots, client } = list
  const waiting = slots.take(list)
  if (waiting !== undefined) {
    first = undefined
    if (!(await waiting)) return
  }
  try {
    let page = first ?? (await readNext(list, after))
    first = undefined
    yield page
    while (
      !slots.clients.isGone(client) &&
      (page.length === MAX_PAGE || encodeWhole(page, page.length) === undefined)
    ) {
      page = await readNext(list, page.at(-1)!.id)
      yield page
    }
  } finally {
    slots.release(owner)
  }
}

/** Reads in another round of the event loop, so that a long list does not hold up other requests. */
async function readNext(list: PlantList, after: bigint | undefined): Promise<Page> {
  await laterRound()
  return readPage(list, MAX_PAGE, after)
}

/** In two passes: the header says where the next list begins. If the ids are too many to keep, this is cut short. */
async function listSurveyed(list: PlantList, first: Page): Promise<Listing> {
  const { limit, after, includesId } = list
  const ids = new SurveyedIds()
  let count = 0
  let isCut = false
  for await (const page of allPages(list, after, first)) {
    for (const { id } of page) {
      isCut = count === limit || ids.isFull
      if (isCut) break
      ids.add(id)
      count++
    }
    if (isCut) break
  }
  return { body: encodePages(surveyedPages(list, ids), includesId), cursor: isCut ? ids.last : undefined }
}

/** Reads the surveyed plants. One created since would make the list too long, or push out one that no other list holds. */
async function* surveyedPages(list: PlantList, ids: SurveyedIds): AsyncGenerator<Page> {
  const surveyed = ids[Symbol.iterator]()
  let wanted = surveyed.next()
  for await (const page of allPages(list, list.after)) {
    yield page.filter(({ id }) => {
      while (wanted.done !== true && wanted.value < id) wanted = surveyed.next()
      const isWanted = wanted.value === id
      if (isWanted) wanted = surveyed.next()
      return isWanted
    })
    if (wanted.done === true) return
  }
}

async function* encodePages(pages: AsyncIterable<Page> | Iterable<Page>, includesId: boolean): AsyncGenerator<string> {
  let opening = '['
  for await (const page of pages) {
    for (let at = 0; at < page.length;) {
      const { text, end } = encodePlants(page, at, page.length, PIECE_BYTES, includesId)
      yield opening + text
      opening = end < page.length ? '' : ','
      at = end
    }
  }
  yield opening === '[' ? '[]' : ']'
}

/** The list of a page's first plants, piece by piece if it is long: a store may make a page of any size. */
const encodeCut = (page: Page, count: number, includesId: boolean): Listing['body'] =>
  encodeWhole(page, count, includesId) ?? encodePages([page.slice(0, count)], includesId)

/** The list of a page's first plants, or undefined if their text is `MAX_PAGE_BYTES` long or longer. */
function encodeWhole(page: Page, count: number, includesId = false): string | undefined {
  const { text } = encodePlants(page, 0, count, MAX_PAGE_BYTES, includesId)
  return text.length < MAX_PAGE_BYTES ? `[${text}]` : undefined
}

/**
 * The text of plants of a page, up to the one that makes it so many bytes long, and the index after that. Before `stop`,
 * it ends behind the next plant's opening brace, where a text that starts within the page goes on.
 */
function encodePlants(page: Page, start: number, stop: number, maxBytes: number, includesId: boolean) {
  let text = start === 0 && stop > 0 ? '{' : ''
  let end = start
  for (; end < stop && text.length < maxBytes; end++) {
    const plant = page[end]!
    if (includesId) {
      // Several steps: one with a template would make a string more for each plant.
      text += '"id":'
      text += toDigits(plant.id)
      text += ','
    }
    const rest = encodeRest(plant)
    text += end + 1 < stop ? rest : closeRest(rest)
  }
  return { text, end }
}

/** The digits of an id. V8 takes twice as long for those of a bigint as for those of a small integer. */
const toDigits = (id: bigint): string => String(id >= 0n && id <= MAX_SMALL ? Number(id) : id)
