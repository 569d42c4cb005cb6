export type { Access, Authenticate, TokenHolder } from './http/caller.ts'
export { openapi } from './openapi/openapi.ts'
export type { PlantStoreOptions, ResponseEvent } from './options.ts'
export type { NewPlant, Plant } from './plants/plant.ts'
export { createPlantStore, type PlantStore } from './plant-store.ts'
export {
  MAX_PAGE,
  MAX_PAGE_BYTES,
  StoreUnavailableError,
  type Page,
  type PageRequest,
  type Store,
} from './plants/store.ts'
export { memoryStore } from './stores/memory/memory-store.ts'
