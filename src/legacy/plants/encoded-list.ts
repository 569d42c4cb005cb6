import { chain, type MaybePromise } from '../maybe-promise.ts'
import { readMember } from '../option-checks.ts'
import { decodePlant, type EncodedPlant, type NewPlant } from './plant.ts'
import type { Page, PageRequest, Store } from './store.ts'

/** A page whose plants might already be encoded as JSON. */
export interface EncodedPage extends Pick<Page, 'hasMore'> {
  readonly plants: readonly (EncodedPlant | NewPlant)[]
}

type ListFunction<Result> = (owner: string, request: PageRequest) => Result

/** The key is the `list` function, not the store: if a wrapper replaces `list`, the service calls the replacement. */
const encodedLists = new WeakMap<ListFunction<unknown>, ListFunction<MaybePromise<EncodedPage>>>()

/**
 * Converts a `list` function that returns encoded plants into one that returns plain plants. The service calls the
 * original function, because encoded plants are far cheaper.
 */
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

/** Lists plants, encoded if the store supports that. */
export function listEncodedPlants(store: Store, owner: string, request: PageRequest): MaybePromise<EncodedPage> {
  const list = encodedLists.get((store as { readonly list: ListFunction<unknown> }).list)
  return list === undefined ? store.list(owner, request) : list(owner, request)
}
