import { createHash, randomBytes } from 'node:crypto'
import { setImmediate as nextTick } from 'node:timers/promises'
import { MAX_PAGE, memoryStore, type Page, type PageRequest, type Store } from '../../src/index.ts'
import { get, type TestRequest } from '../support/service.ts'

/** The owners of long lists, and how many plants each owner has. */
export const LIST_SIZES = { some: 5000, more: 40_000, many: 200_000 }

/** Contains the long lists. The names barely compress. */
const listStore = memoryStore()
/** The expected body of each list. */
export const LIST_BODIES = new Map<string, string>()
for (const [owner, count] of Object.entries(LIST_SIZES)) {
  const names = Array.from({ length: count }, (_, i) => `é${createHash('sha256').update(`${i}`).digest('base64')}`)
  for (const [i, name] of names.entries()) void listStore.create(owner, { id: BigInt(i), name })
  LIST_BODIES.set(owner, JSON.stringify(names.map((name) => ({ name }))))
}

/** Returns the number of bytes before the second page of a list. */
export function getFirstPageBytes(owner: string): number {
  const names = (JSON.parse(LIST_BODIES.get(owner)!) as { name: string }[]).slice(0, MAX_PAGE)
  return Buffer.byteLength(JSON.stringify(names)) - 1
}

/** Long names that fill the buffers of a connection. gzip can't compress them, because they recur outside its window. */
const LONG_NAMES = Array.from({ length: 100 }, () => randomBytes(750).toString('base64'))

/** Returns the next page of an endless list. */
function createNextPage({ limit, after = 0n }: PageRequest): Page {
  const plants = Array.from({ length: limit }, (_, i) => ({ id: after + BigInt(i) + 1n, name: LONG_NAMES[i % 100]! }))
  return { plants, hasMore: true }
}

/**
 * Creates a store with the long lists. The list of the owner `endless` never ends, and the list of the owner `failing`
 * fails after the first page.
 */
export function createLongListStore(): Store {
  const memory = memoryStore()
  return {
    ...memory,
    list(owner, page) {
      if (owner === 'endless') return nextTick(createNextPage(page))
      if (owner === 'failing' && page.after !== undefined) throw new Error('disk')
      if (owner === 'failing') return listStore.list('some', page)
      return (owner in LIST_SIZES ? listStore : memory).list(owner, page)
    },
  }
}

/** Requests the list of an owner in a content coding. */
export function getWithEncoding(owner: string, coding: string): TestRequest {
  const request = get(owner)
  return { ...request, fields: [...request.fields, 'Accept-Encoding', coding] }
}
