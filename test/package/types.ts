/** Code that must compile, and code that must not. The type checker is the test; this file is never run. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { createServer } from 'node:https'
import type express from 'express'
import {
  createPlantStore,
  memoryStore,
  openapi,
  type Authenticate,
  type ErrorCode,
  type HostRequest,
  type NewPlant,
  type Plant,
  type PlantStoreDescription,
  type PlantStoreOptions,
  type ResponseEvent,
  type Store,
  type Validate,
  type ValidationContext,
} from '../../src/index.ts'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import type { ConformanceOptions } from '../../src/conformance/store-conformance.ts'
import type { Connection } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const tokens = { secret: 'ada' }
const authenticate = (token: string): string | null => (token === 'secret' ? 'ada' : null)

createPlantStore({
  authenticate: async (token, request) => Promise.resolve(request.headers.host === token ? token : undefined),
})
createPlantStore({ tokens, authenticate: undefined, store: undefined, maxLimit: undefined, onError: undefined })
createPlantStore({ tokens, onResponse: ({ request }: { request: HostRequest }) => request.socket.remoteAddress })
// @ts-expect-error 40402 isn't an error code
createPlantStore({ tokens, onResponse: ({ error }) => error === 40402 })

// @ts-expect-error either tokens or authenticate is required
createPlantStore({})
// @ts-expect-error tokens and authenticate are mutually exclusive
createPlantStore({ tokens, authenticate })
// @ts-expect-error an owner must be a string
createPlantStore({ tokens: { secret: 7 } })
// @ts-expect-error an owner must be a string
createPlantStore({ authenticate: () => 7 })
// @ts-expect-error an object must have an access level
createPlantStore({ tokens: { secret: { owner: 'ada' } } })
// @ts-expect-error an object must have an access level
createPlantStore({ authenticate: () => ({ owner: 'ada', access: undefined }) })
// @ts-expect-error unknown option
createPlantStore({ tokens, maxBodybytes: 1 })
// @ts-expect-error a timeout must be a number of milliseconds
createPlantStore({ tokens, storeTimeoutMs: '10s' })
// @ts-expect-error validate must return a message or nothing
createPlantStore({ tokens, validate: () => false })
createPlantStore({ tokens, validate: async () => Promise.resolve(undefined) })
createPlantStore({ tokens, validate: ({ name }, { owner, request }) => (name === owner ? request.url : null) })
// @ts-expect-error validate must resolve to a message or nothing
createPlantStore({ tokens, validate: async () => Promise.resolve(false) })
// @ts-expect-error a store must have list
createPlantStore({ tokens, store: { create: () => true, delete: () => true } })

createServer(createPlantStore({ tokens }))

// A host can declare the class of its requests.
type AppRequest = express.Request & { user?: { id: string; number: number } }
type FromApp<Argument> = Argument & { request: AppRequest }
createPlantStore({
  authenticate: (token, request: AppRequest) => (token.startsWith('a') ? request.user?.id : request.get('X-Owner')),
  validate: ({ name }, { owner, request }: FromApp<ValidationContext>) => (name === owner ? request.user?.id : null),
  onError: (error, { originalUrl }: AppRequest) => console.error(originalUrl, error),
  onResponse: ({ status, request }: FromApp<ResponseEvent>) => console.log(request.originalUrl, status),
})
createPlantStore({ authenticate: (_, request: IncomingMessage & { user?: { id: string } | null }) => request.user?.id })
createPlantStore({ authenticate: async (token, request: Http2ServerRequest) => Promise.resolve(request.authority) })
export const authenticateUser: Authenticate = (token, request: AppRequest) => request.user?.id
export const validatePlant: Validate = (plant, { request }: FromApp<ValidationContext>) => request.user?.id
// @ts-expect-error an owner must be a string
createPlantStore({ authenticate: (token, request: AppRequest) => request.user?.number })
// @ts-expect-error an owner must be a string
createPlantStore({ authenticate: async (token, request: AppRequest) => Promise.resolve(request.user?.number) })
// @ts-expect-error the request isn't a Koa context
createPlantStore({ authenticate: (token, context: { req: IncomingMessage; user: string }) => context.user })
// @ts-expect-error a token is a string
createPlantStore({ authenticate: (token: number) => String(token) })
// @ts-expect-error authenticate has only two parameters
createPlantStore({ authenticate: (token, request: AppRequest, response: ServerResponse) => response.req.url })
// @ts-expect-error an id is a bigint
createPlantStore({ tokens, validate: ({ id }: { id: number }) => (id === 1 ? 'taken' : null) })
// @ts-expect-error the second argument isn't the request
createPlantStore({ tokens, validate: (plant, request: AppRequest) => request.user?.id })
// @ts-expect-error an event has no path
createPlantStore({ tokens, onResponse: ({ path }: { path: string }) => path })

/** A connection class whose optional members are present but undefined. */
class MinimalConnection {
  get processID(): number | undefined {
    return undefined
  }
}
export const connection: Pick<Connection, 'processID'> = new MinimalConnection()
export const members: Omit<Connection, 'query' | 'release' | 'on'> = {
  secretKey: undefined,
  host: undefined,
  port: undefined,
  ssl: undefined,
  connection: { stream: undefined },
}
export const storeWithoutOptionalMethods: Store = { ...memoryStore(), ping: undefined, close: undefined }
export const closing: unknown = sqliteStore(':memory:').close()
export const disposing: readonly Promise<void>[] = [memoryStore()[Symbol.asyncDispose]()]

const register = (name: string, run: () => Promise<void>): unknown => [name, run]
const createFileStore = async (): Promise<Store & { path: string }> =>
  Promise.resolve({ ...memoryStore(), path: 'plants.json' })
storeConformance({
  test: register,
  create: createFileStore,
  breakWrites: async ({ path }) => Promise.resolve(path.length),
  restore: (file) => file.path,
})
storeConformance({ test: register, create: memoryStore, breakWrites: undefined, restore: undefined, seed: undefined })
// @ts-expect-error the store that was created has no path
storeConformance({ test: register, create: memoryStore, breakWrites: ({ path }) => typeof path, restore: () => 0 })
// @ts-expect-error a store must have list
storeConformance({ test: register, create: () => ({ create: () => true, delete: () => true }) })
export const conformanceOptions: ConformanceOptions = { test: register, create: () => memoryStore() }
storeConformance(conformanceOptions)

const store: Store = memoryStore()
// @ts-expect-error an id must be a bigint
void store.create('ada', { id: 1, name: 'Fern' })
// @ts-expect-error a page request must have a limit
void store.list('ada', { maxBytes: 1 })
// @ts-expect-error a page request must have maxBytes
void store.list('ada', { limit: 1 })

export const plant: NewPlant = { id: 1n, name: 'Fern', tag: undefined }
// @ts-expect-error plants are readonly
plant.name = 'Monstera'
// @ts-expect-error returned plants have no id
export const returnedPlant: Plant = { id: 1n, name: 'Fern' }
// @ts-expect-error a tag can't be null
export const tagged: Plant = { name: 'Fern', tag: null }
export const options: PlantStoreOptions = { tokens }
export const code: ErrorCode = 40900
export const description: PlantStoreDescription = openapi

export const title: string = openapi.info.title
export const operationId: string = openapi.paths['/plants'].get.operationId
export const required: string[] | undefined = openapi.components.schemas.NewPlant.required
// @ts-expect-error only the standalone server has /livez
export const livez: unknown = openapi.paths['/livez']
// @ts-expect-error the OpenAPI document is readonly
openapi.info.title = 'Weeds'
export const mounted: object = { ...openapi, servers: [{ url: '/api/v1' }] }
