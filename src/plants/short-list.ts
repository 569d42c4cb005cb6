import type { ListQuery, ShortList } from './listing.ts'

/** Makes a list at once; undefined if it does not fit a page. */
export type ListShort = (owner: string, query: ListQuery) => ShortList | undefined

/** By the function `list` of a store. */
const shortLists = new WeakMap<object, ListShort>()

/**
 * Lets a store that keeps the texts of plants join them, without an object and an id for each plant. This belongs to the
 * function `list`: if a host puts one of its own in the place of that, to count calls or to leave out plants, it is called.
 */
export function addShortLists({ list }: { readonly list: object }, listShort: ListShort): void {
  shortLists.set(list, listShort)
}

/** What makes the short lists of a store now; undefined if it gives pages only. */
export function shortListsOf({ list }: { readonly list: object }): ListShort | undefined {
  return shortLists.get(list)
}
