import { andThen, type MaybePromise } from '../maybe-promise.ts'
import { encodePlant } from './plant.ts'
import { MAX_PAGE, MAX_PAGE_BYTES, type Page, type PageRequest } from './store.ts'

/** Reads one page of an owner's plants. */
export type ReadPage = (request: PageRequest) => MaybePromise<Page>

/** Which plants a list is asked for. */
export interface ListQuery {
  /** At most this many; Infinity if there is no limit. */
  readonly limit: number
  /** Only plants whose id is greater. */
  readonly after: bigint | undefined
}

/** A list of plants. */
export interface Listing {
  /** The JSON array in UTF-8, one character for each byte: whole if it fits a page, else piece by piece. */
  readonly body: string | AsyncIterable<string>
  /** The id of the last plant of the list; undefined if no plants follow it. */
  readonly cursor: bigint | undefined
}

/** A piece of a list ends with the plant that makes it this long. */
const PIECE_BYTES = 65_536

/**
 * Lists plants. A page or two and a piece of text are in memory at once, however long the list is and however large its
 * plants are.
 */
export function listPlants(readPage: ReadPage, query: ListQuery): MaybePromise<Listing> {
  const { limit, after } = query
  if (limit === 0) return { body: '[]', cursor: undefined }

  // One plant more than wanted shows whether the limit cuts the list short.
  const asked = Math.min(limit + 1, MAX_PAGE)
  return andThen(readPage({ limit: asked, maxBytes: MAX_PAGE_BYTES, after }), (page) => {
    if (page.length > limit) return { body: encodeCut(page, limit), cursor: page[limit - 1]!.id }
    const body = page.length < asked ? encodeWhole(page, page.length) : undefined
    if (body !== undefined) return { body, cursor: undefined }

    if (limit === Infinity) return { body: encodePages(allPages(readPage, page)), cursor: undefined }
    if (page.length < limit) return listSurveyed(readPage, page, query)
    const last = page.at(-1)!.id
    return andThen(readPage({ limit: 1, maxBytes: MAX_PAGE_BYTES, after: last }), (following) => {
      return { body: encodeCut(page, limit), cursor: following.length === 0 ? undefined : last }
    })
  })
}

/** A page that is not the last, and all that follow. */
async function* allPages(readPage: ReadPage, page: Page): AsyncGenerator<Page> {
  yield page
  do {
    page = await readPage({ limit: MAX_PAGE, maxBytes: MAX_PAGE_BYTES, after: page.at(-1)!.id })
    yield page
  } while (page.length === MAX_PAGE || encodeWhole(page, page.length) === undefined)
}

async function listSurveyed(readPage: ReadPage, first: Page, query: ListQuery): Promise<Listing> {
  const { ids, cursor } = await surveyPlants(allPages(readPage, first), query.limit)
  return { body: encodePages(surveyedPages(readPage, ids, query.after)), cursor }
}

interface Survey {
  /** The ids of the list, a page each. */
  readonly ids: readonly BigInt64Array[]
  readonly cursor: bigint | undefined
}

/**
 * Finds which plants a long list with a limit holds. The header of the response says where the next list begins, so that
 * must be known before the first plant is sent. Their ids, 8 bytes each, are enough to know it.
 */
async function surveyPlants(pages: AsyncIterable<Page>, limit: number): Promise<Survey> {
  const ids: BigInt64Array[] = []
  let count = 0
  let cursor: bigint | undefined
  for await (const page of pages) {
    const shown = page.slice(0, limit - count)
    if (shown.length > 0) {
      ids.push(BigInt64Array.from(shown, ({ id }) => id))
      count += shown.length
      cursor = shown.at(-1)!.id
    }
    if (shown.length < page.length) return { ids, cursor }
  }
  return { ids, cursor: undefined }
}

/**
 * Reads the surveyed plants. One that was deleted since is left out. One that was created since is not added: it would
 * make the list longer than its limit, or push out a plant that no other list holds.
 */
async function* surveyedPages(
  readPage: ReadPage,
  ids: readonly BigInt64Array[],
  from: bigint | undefined,
): AsyncGenerator<Page> {
  let after = from
  for (const surveyed of ids) {
    const wanted = new Set(surveyed)
    const last = surveyed.at(-1)!
    do {
      const page = await readPage({ limit: MAX_PAGE, maxBytes: MAX_PAGE_BYTES, after })
      if (page.length === 0) return
      yield page.filter(({ id }) => wanted.has(id))
      after = page.at(-1)!.id
    } while (after < last)
    after = last
  }
}

async function* encodePages(pages: AsyncIterable<Page> | Iterable<Page>): AsyncGenerator<string> {
  let opening = '['
  for await (const page of pages) {
    for (let at = 0; at < page.length;) {
      const { text, end } = encodePlants(page, at, page.length, PIECE_BYTES)
      yield opening + text
      opening = ','
      at = end
    }
  }
  yield opening === '[' ? '[]' : ']'
}

/** The list of a page's first plants, piece by piece if it is long: a store may make a page of any size. */
function encodeCut(page: Page, count: number): Listing['body'] {
  return encodeWhole(page, count) ?? encodePages([page.slice(0, count)])
}

/** The list of a page's first plants, or undefined if their text is `MAX_PAGE_BYTES` long or longer. */
function encodeWhole(page: Page, count: number): string | undefined {
  const { text } = encodePlants(page, 0, count, MAX_PAGE_BYTES)
  return text.length < MAX_PAGE_BYTES ? `[${text}]` : undefined
}

/**
 * The text of plants of a page, up to the one that makes it so many bytes long, and the index after that. A loop: `map`
 * and `join` take longer.
 */
function encodePlants(page: Page, start: number, stop: number, maxBytes: number): { text: string; end: number } {
  let text = ''
  let end = start
  for (; end < stop && text.length < maxBytes; end++) {
    text += end === start ? encodePlant(page[end]!) : `,${encodePlant(page[end]!)}`
  }
  return { text, end }
}
