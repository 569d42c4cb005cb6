/** What must compile and what must not. This file is never run: the compiler is the test. */
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { Oas3_1Definition } from '@redocly/openapi-core'
import {
  createPlantStore,
  memoryStore,
  openapi,
  type ErrorCode,
  type HostRequest,
  type NewPlant,
  type Plant,
  type PlantStoreDescription,
  type PlantStoreOptions,
  type Store,
} from '../../src/index.ts'
import type { Connection } from '../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const tokens = { secret: 'ada' }
const authenticate = (token: string): string | null => (token === 'secret' ? 'ada' : null)

createPlantStore({
  authenticate: async (token, request) => Promise.resolve(request.headers.host === token ? token : undefined),
})
createPlantStore({ tokens, authenticate: undefined, store: undefined, maxLimit: undefined, onError: undefined })
createPlantStore({ tokens, onResponse: ({ request }: { request: HostRequest }) => request.socket.remoteAddress })
// @ts-expect-error it may be one of HTTP/2
createPlantStore({ tokens, onResponse: ({ request }: { request: IncomingMessage }) => request.url })
// @ts-expect-error it may be one of HTTP/2
createPlantStore({ tokens, onError: (_, request: IncomingMessage) => request.url })
// @ts-expect-error it may be one of HTTP/2
createPlantStore({ authenticate: (_, request: IncomingMessage) => request.url })
// @ts-expect-error no error has this code
createPlantStore({ tokens, onResponse: ({ error }) => error === 40402 })

// @ts-expect-error who may ask?
createPlantStore({})
// @ts-expect-error one of them, not both
createPlantStore({ tokens, authenticate })
// @ts-expect-error an owner is a string
createPlantStore({ tokens: { secret: 7 } })
// @ts-expect-error an owner is a string
createPlantStore({ authenticate: () => 7 })
// @ts-expect-error an object says what its token may do
createPlantStore({ tokens: { secret: { owner: 'ada' } } })
// @ts-expect-error an object says what its token may do
createPlantStore({ authenticate: () => ({ owner: 'ada', access: undefined }) })
// @ts-expect-error there is no such option
createPlantStore({ tokens, maxBodybytes: 1 })
// @ts-expect-error a number of milliseconds
createPlantStore({ tokens, storeTimeoutMs: '10s' })
// @ts-expect-error a message, or nothing
createPlantStore({ tokens, validate: () => false })
createPlantStore({ tokens, validate: async () => Promise.resolve(undefined) })
createPlantStore({ tokens, validate: ({ name }, { owner, request }) => (name === owner ? request.url : null) })
// @ts-expect-error a promise of a message, or of nothing
createPlantStore({ tokens, validate: async () => Promise.resolve(false) })
// @ts-expect-error a store has list, too
createPlantStore({ tokens, store: { create: () => true, delete: () => true } })

createServer(createPlantStore({ tokens }))

/** Optional members that a class makes undefined, not absent. */
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

const store: Store = memoryStore()
// @ts-expect-error an id is a bigint
void store.create('ada', { id: 1, name: 'Fern' })
// @ts-expect-error a page has a limit
void store.list('ada', { maxBytes: 1 })
// @ts-expect-error a page has a bound in bytes, too
void store.list('ada', { limit: 1 })

export const plant: NewPlant = { id: 1n, name: 'Fern', tag: undefined }
// @ts-expect-error a plant does not change
plant.name = 'Monstera'
// @ts-expect-error what is answered has no id
export const returnedPlant: Plant = { id: 1n, name: 'Fern' }
// @ts-expect-error null is no tag
export const tagged: Plant = { name: 'Fern', tag: null }
export const options: PlantStoreOptions = { tokens }
export const code: ErrorCode = 40900
export const description: PlantStoreDescription = openapi

export const title: string = openapi.info.title
export const operationId: string = openapi.paths['/plants'].get.operationId
export const required: string[] | undefined = openapi.components.schemas.NewPlant.required
// @ts-expect-error the program has it, the service does not
export const livez: unknown = openapi.paths['/livez']
// @ts-expect-error the description does not change
openapi.info.title = 'Weeds'
export const mounted: object = { ...openapi, servers: [{ url: '/api/v1' }] }
export const forTools: Pick<Oas3_1Definition, 'info' | 'paths' | 'security' | 'tags'> = openapi
