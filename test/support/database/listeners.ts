function fail(): never {
  throw new Error('a fault of the listener')
}

/** What a host may have for the warnings of a store, none of which may change what the store does. */
export const LISTENERS: readonly (readonly [name: string, onWarning: (() => void) | undefined])[] = [
  ['is nobody', undefined],
  ['throws', fail],
  ['rejects', async (): Promise<void> => Promise.reject(new Error('a fault of the listener'))],
]
