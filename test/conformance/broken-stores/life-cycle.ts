import { found, row, type BrokenStore, type Change } from './sorting-store.ts'

/** Fails when it is closed again. */
function closing(isOpenAgain: (plants: number) => boolean): Change {
  return (store) => {
    let isClosed = false
    return {
      close() {
        if (isClosed && !isOpenAgain(store.plants.size)) throw new Error('Closed already')
        isClosed = true
      },
    }
  }
}

/** Stores whose ping or close fails. */
export const WRONG_LIFE_CYCLES: readonly BrokenStore[] = [
  ...found(
    'settles a ping, if it takes one',
    row('is never in reach', 'must not fail.', () => ({ ping: () => Promise.reject(new Error('Out of reach')) })),
  ),
  ...found(
    'may be closed twice',
    row(
      'closes once',
      'must not fail.',
      closing(() => false),
    ),
    row(
      'closes once if it has plants',
      'must not fail.',
      closing((plants) => plants === 0),
    ),
  ),
]
