import { chain, type MaybePromise } from '../maybe-promise.ts'
import { readMember } from '../option-checks.ts'
import { decodePlant, type EncodedPlant, type NewPlant } from './plant.ts'
import type { Page, PageRequest, Store } from './store.ts'

/** A page whose plants may be encoded. */
export interface EncodedPage extends Pick<Page, 'hasMore'> {
  readonly plants: readonly (EncodedPlant | NewPlant)[]
}

type ListFunction<Result> = (owner: string, request: PageRequest) => Result

/** By the `list` function itself, so that a store which replaces the function doesn't bypass its own. */
const encodedLists = new WeakMap<ListFunction<unknown>, ListFunction<MaybePromise<EncodedPage>>>()

/** Makes the `list` of a store, which returns plain plants. The service uses the encoded plants, which cost far less. */
export function wrapEncodedList(list: ListFunction<Promise<EncodedPage>>): ListFunction<Promise<Page>>
export function wrapEncodedList(list: ListFunction<MaybePromise<EncodedPage>>): ListFunction<MaybePromise<Page>>
export function wrapEncodedList(list: ListFunction<MaybePromise<EncodedPage>>): ListFunction<MaybePromise<Page>> {
  const plainList: ListFunction<MaybePromise<Page>> = (owner, request) => {
    const { limit, maxBytes } = request
    return chain(list(owner, { limit, maxBytes, after: readMember(request, 'after') }), decodePage)
  }
  encodedLists.set(plainList, list)
  return plainList
}

const decodePage = ({ plants, hasMore }: EncodedPage): Page => ({ plants: plants.map(decodePlant), hasMore })

/** Lists plants, encoded if the store can. */
export function listEncodedPlants(store: Store, owner: string, request: PageRequest): MaybePromise<EncodedPage> {
  const list = encodedLists.get((store as { readonly list: ListFunction<unknown> }).list)
  return list === undefined ? store.list(owner, request) : list(owner, request)
}
