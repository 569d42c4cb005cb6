/** Code that must compile, and code that must not. The type checker is the test; this file is never run. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { createServer } from 'node:https'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import {
  createPlantStore,
  memoryStore,
  type ErrorCode,
  type NewPlant,
  type Plant,
  type ResponseEvent,
  type Store,
  type Hooks,
  type ValidationContext,
} from '../../src/index.ts'

const tokens = { secret: 'ada' }
const authenticate = (token: string): string | null => (token === 'secret' ? 'ada' : null)

createServer(createPlantStore({ tokens }))
createPlantStore({ tokens: new Map([['secret', { owner: 'ada', access: 'read' as const }]]) })
createPlantStore({ tokens, authenticate: undefined, store: undefined, maxLimit: undefined, onError: undefined })
createPlantStore({ tokens, validate: async () => Promise.resolve(undefined) })
// @ts-expect-error 40402 isn't an error code
createPlantStore({ tokens, onResponse: ({ error }) => error === 40402 })
// @ts-expect-error either tokens or authenticate is required
createPlantStore({})
// @ts-expect-error tokens and authenticate are mutually exclusive
createPlantStore({ tokens, authenticate })
// @ts-expect-error an object must have an access level
createPlantStore({ tokens: { secret: { owner: 'ada' } } })
// @ts-expect-error unknown option
createPlantStore({ tokens, maxBodybytes: 1 })
// @ts-expect-error validate must return a message or nothing
createPlantStore({ tokens, validate: () => false })
// @ts-expect-error a store must have list
createPlantStore({ tokens, store: { create: () => true, delete: () => true } })

// A host can declare the class of its requests.
declare class AppRequest extends IncomingMessage {
  readonly originalUrl: string
  readonly user?: { id: string; number: number }
  get(name: string): string | undefined
}
type FromApp<Argument> = Argument & { request: AppRequest }
createPlantStore({
  authenticate: (token, request: AppRequest) => (token.startsWith('a') ? request.user?.id : request.get('X-Owner')),
  validate: ({ name }, { owner, request }: FromApp<ValidationContext>) => (name === owner ? request.user?.id : null),
  onError: (error, { originalUrl }: AppRequest) => console.error(originalUrl, error),
  onResponse: ({ status, request }: FromApp<ResponseEvent>) => console.log(request.originalUrl, status),
})
createPlantStore({ authenticate: async (token, request: Http2ServerRequest) => Promise.resolve(request.authority) })
export const authenticateUser: Hooks['authenticate'] = (token, request: AppRequest) => request.user?.id
export const validatePlant: Hooks['validate'] = (plant, { request }: FromApp<ValidationContext>) => request.user?.id
// @ts-expect-error an owner must be a string
createPlantStore({ authenticate: async (token, request: AppRequest) => Promise.resolve(request.user?.number) })
// @ts-expect-error the request isn't a Koa context
createPlantStore({ authenticate: (token, context: { req: IncomingMessage; user: string }) => context.user })
// @ts-expect-error authenticate has only two parameters
createPlantStore({ authenticate: (token, request: AppRequest, response: ServerResponse) => response.req.url })

const test = (name: string, run: () => Promise<void>): unknown => [name, run]
const create = async (): Promise<Store & { path: string }> => Promise.resolve({ ...memoryStore(), path: 'plants.json' })
storeConformance({ test, create, breakWrites: ({ path }) => path.length, restore: (file) => file.path })
// @ts-expect-error the store that was created has no path
storeConformance({ test, create: memoryStore, breakWrites: ({ path }) => typeof path, restore: () => 0 })

// @ts-expect-error an id must be a bigint
void memoryStore().create('ada', { id: 1, name: 'Fern' })
export const plant: NewPlant = { id: 1n, name: 'Fern', tag: undefined }
// @ts-expect-error plants are readonly
plant.name = 'Monstera'
// @ts-expect-error returned plants have no id
export const returnedPlant: Plant = { id: 1n, name: 'Fern' }
export const code: ErrorCode = 40900
