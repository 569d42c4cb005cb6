import { andThen } from './deadline.ts'
import type { ListQuery } from './http/list-query.ts'
import { encodePlant, type NewPlant } from './plant.ts'
import { MAX_PAGE, type Page } from './store.ts'

/** Reads one page of an owner's plants. */
export type ReadPage = (page: Page) => readonly NewPlant[] | Promise<readonly NewPlant[]>

/** A list of plants as it is answered. */
export interface Listing {
  /** The JSON array: whole where it fits a page, else piece by piece. */
  readonly body: string | AsyncIterable<string>
  /** The id of the last plant of the list, where more plants follow it. */
  readonly cursor: bigint | undefined
}

/**
 * Lists plants. At most a few pages are in memory at once, however long the list is.
 */
export function listPlants(readPage: ReadPage, query: ListQuery): Listing | Promise<Listing> {
  const { limit, after } = query
  if (limit === 0) return { body: '[]', cursor: undefined }

  // One plant more than wanted shows whether the limit cuts the list short.
  return andThen(readPage({ limit: Math.min(limit + 1, MAX_PAGE), after }), (page) => {
    if (page.length > limit) return { body: `[${encodePlants(page, limit)}]`, cursor: page[limit - 1]!.id }
    if (page.length < MAX_PAGE) return { body: `[${encodePlants(page)}]`, cursor: undefined }

    if (limit === Infinity) return { body: encodePages(allPages(readPage, page)), cursor: undefined }
    if (limit > MAX_PAGE) return listSurveyed(readPage, page, query)
    const last = page.at(-1)!.id
    return andThen(readPage({ limit: 1, after: last }), (following) => {
      return { body: `[${encodePlants(page)}]`, cursor: following.length === 0 ? undefined : last }
    })
  })
}

async function* allPages(readPage: ReadPage, first: readonly NewPlant[]): AsyncGenerator<readonly NewPlant[]> {
  let page = first
  yield page
  while (page.length === MAX_PAGE) {
    page = await readPage({ limit: MAX_PAGE, after: page.at(-1)!.id })
    yield page
  }
}

async function listSurveyed(readPage: ReadPage, first: readonly NewPlant[], query: ListQuery): Promise<Listing> {
  const { ids, cursor } = await surveyPlants(readPage, first, query.limit)
  return { body: encodePages(surveyedPages(readPage, ids, query.after)), cursor }
}

interface Survey {
  /** The ids of the list, a page each. */
  readonly ids: readonly BigInt64Array[]
  readonly cursor: bigint | undefined
}

/**
 * Finds which plants a long list with a limit holds. The header of the answer says where the next list begins, so that
 * must be known before the first plant is sent; 8 bytes a plant are what it takes to know it without keeping the plants.
 */
async function surveyPlants(readPage: ReadPage, first: readonly NewPlant[], limit: number): Promise<Survey> {
  const ids: BigInt64Array[] = []
  let count = 0
  let cursor: bigint | undefined
  for await (const page of allPages(readPage, first)) {
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
 * Reads the surveyed plants. One that was deleted since is left out; one that was created since is not added, for it
 * would make the list longer than its limit or push out a plant that no other list holds.
 */
async function* surveyedPages(
  readPage: ReadPage,
  ids: readonly BigInt64Array[],
  from: bigint | undefined,
): AsyncGenerator<readonly NewPlant[]> {
  let after = from
  for (const surveyed of ids) {
    const wanted = new Set(surveyed)
    const last = surveyed.at(-1)!
    let page: readonly NewPlant[]
    do {
      page = await readPage({ limit: MAX_PAGE, after })
      yield page.filter(({ id }) => wanted.has(id))
      after = page.at(-1)?.id
    } while (page.length === MAX_PAGE && after! < last)
    after = last
  }
}

async function* encodePages(pages: AsyncIterable<readonly NewPlant[]>): AsyncGenerator<string> {
  let opening = '['
  for await (const page of pages) {
    if (page.length === 0) continue
    yield opening + encodePlants(page)
    opening = ','
  }
  yield opening === '[' ? '[]' : ']'
}

/** A loop: on a page of ten, `map` and `join` cost half as much again. */
function encodePlants(page: readonly NewPlant[], count: number = page.length): string {
  let text = ''
  for (let i = 0; i < count; i++) text += i === 0 ? encodePlant(page[i]!) : `,${encodePlant(page[i]!)}`
  return text
}
