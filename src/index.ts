/**
 * The request listener, the in-memory store, and the types for writing stores and options.
 * @module plant-store
 */

export type { Access, TokenHolder } from './http/caller.ts'
export type { ErrorCode } from './http/errors.ts'
export type { ValidationContext } from './http/new-plant.ts'
export type { HostRequest } from './http/transport.ts'
export { openapi, type PlantStoreDescription } from './openapi/openapi.ts'
export type { MaybePromise } from './maybe-promise.ts'
export type { ResourcePath } from './operations.ts'
export type {
  Authenticate,
  AuthenticateOptions,
  CommonOptions,
  Hooks,
  PlantStoreOptions,
  ResponseEvent,
  TokenOptions,
  Validate,
} from './options.ts'
export type { NewPlant, Plant } from './plants/plant.ts'
export { createPlantStore, type PlantStore } from './plant-store.ts'
export {
  MAX_PAGE,
  MAX_PAGE_BYTES,
  StoreUnavailableError,
  type Page,
  type PageRequest,
  type Store,
  type StoreUnavailableErrorOptions,
} from './plants/store.ts'
export { memoryStore, type MemoryStore } from './stores/memory-store.ts'
