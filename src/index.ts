/**
 * The request listener, the in-memory store, and the types for writing stores and options.
 * @module plant-store
 */

export type { Access, TokenHolder } from './http/authentication.ts'
export type { HostRequest } from './http/body.ts'
export type { ErrorCode } from './http/errors.ts'
export type { ResourcePath } from './http/router.ts'
export { openapi, type PlantStoreDescription } from './openapi/openapi.ts'
export type {
  AuthenticateOptions,
  CommonOptions,
  Hooks,
  OptionalHooks,
  PlantStoreOptions,
  ResponseEvent,
  TokenOptions,
  ValidationContext,
} from './options.ts'
export type { NewPlant, Plant } from './plants/plant.ts'
export { createPlantStore, type PlantStore } from './plant-store.ts'
export {
  MAX_PAGE,
  MAX_PAGE_BYTES,
  StoreUnavailableError,
  type MaybePromise,
  type Page,
  type PageRequest,
  type Store,
} from './plants/store.ts'
export { memoryStore, type MemoryStore } from './stores/memory-store.ts'
