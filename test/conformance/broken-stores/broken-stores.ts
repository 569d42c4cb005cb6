import { WRONG_AT_THE_SAME_TIME } from './concurrency.ts'
import { WRONG_IDS } from './ids.ts'
import { WRONG_LIFE_CYCLES } from './life-cycle.ts'
import { MISTAKEN_OWNERS } from './owners.ts'
import { WRONG_PAGES } from './pages.ts'
import { WRONG_PLANTS } from './plants.ts'
import type { BrokenStore } from './sorting-store.ts'
import { WRONG_TEXTS } from './texts.ts'

/** Stores that break the contract, each in one way. */
export const BROKEN_STORES: readonly BrokenStore[] = [
  ...WRONG_IDS,
  ...WRONG_PAGES,
  ...MISTAKEN_OWNERS,
  ...WRONG_PLANTS,
  ...WRONG_TEXTS,
  ...WRONG_AT_THE_SAME_TIME,
  ...WRONG_LIFE_CYCLES,
]
