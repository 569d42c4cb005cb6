import type { ListQuery, ShortList } from './listing.ts'

/** Makes a list at once; undefined if it does not fit a page. */
export type ListShort = (owner: string, query: ListQuery) => ShortList | undefined

/** By the function `list` of a store. */
const shortLists = new WeakMap<object, ListShort>()

/**
 * A store that keeps the texts of plants can join them, without an object and an id for each plant. This goes with the
 * function `list` of the store: if a host replaces that, to count calls or to leave out plants, its own is called.
 */
export function addShortLists({ list }: { readonly list: object }, listShort: ListShort): void {
  shortLists.set(list, listShort)
}

/** The function that makes the short lists of a store; undefined if the store has only pages. */
export function shortListsOf({ list }: { readonly list: object }): ListShort | undefined {
  return shortLists.get(list)
}
