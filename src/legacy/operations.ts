import type { ServerResponse } from 'node:http'
import type { Access, Caller } from './http/caller.ts'
import { HTTP_ERRORS, HttpError } from './http/errors.ts'
import { describeInvalidInteger } from './http/invalid-integer.ts'
import { parseJson } from './http/json.ts'
import { parseListQuery } from './http/list-query.ts'
import { parseNewPlant, type ValidationContext } from './http/new-plant.ts'
import { createResponse, type HttpResponse } from './http/respond.ts'
import type { Resource } from './http/router.ts'
import { chain, type MaybePromise } from './maybe-promise.ts'
import type { CheckedStore } from './plants/checked-store.ts'
import { parseInt64 } from './plants/int64.ts'
import type { ListLimiter } from './plants/list-limiter.ts'
import { listPlants, type ListResult, type ListRequest } from './plants/list-plants.ts'
import { closeObject, encodeFields, type NewPlant } from './plants/plant.ts'

export interface Service {
  readonly store: CheckedStore
  readonly maxLimit: number
  readonly listLimiter: ListLimiter
  /** Throws or rejects if the plant breaks one of the host's rules. */
  readonly validatePlant: ((plant: NewPlant, context: ValidationContext) => MaybePromise<void>) | undefined
}

export interface OperationInput extends ValidationContext {
  readonly resource: Resource<ResourcePath>
  readonly response: ServerResponse
}

export interface Operation {
  readonly access: Access
  /** Whether the operation needs a JSON body, which is read before `run` is called. */
  readonly hasBody: boolean
  readonly run: (service: Service, input: OperationInput, body: Uint8Array) => MaybePromise<HttpResponse>
}

/** The path of a resource, as in the interface description. */
export type ResourcePath = '/plants' | '/plants/{id}'

/** The methods of each resource, except OPTIONS, which every resource supports. */
export interface ResourceMethods extends Record<ResourcePath, string> {
  readonly '/plants': 'GET' | 'HEAD' | 'POST'
  readonly '/plants/{id}': 'DELETE'
}

const LIST_OPERATION: Operation = { access: 'read', hasBody: false, run: handleList }

/** All operations, by path and method. The router, `Allow`, and the errors 405 and 403 are derived from this table. */
export const OPERATIONS: { readonly [Path in ResourcePath]: Readonly<Record<ResourceMethods[Path], Operation>> } = {
  '/plants': { GET: LIST_OPERATION, HEAD: LIST_OPERATION, POST: { access: 'write', hasBody: true, run: handleCreate } },
  '/plants/{id}': { DELETE: { access: 'write', hasBody: false, run: handleDelete } },
}

export const RESOURCE_PATHS: readonly ResourcePath[] = Object.keys(OPERATIONS) as ResourcePath[]

const EMPTY_HEADERS: readonly string[] = []

export function createOptionsResponse(path: ResourcePath): HttpResponse {
  return { ...createResponse(204, allowHeader(path), undefined), allowsCaching: true }
}

/**
 * @throws HttpError 40000 for a malformed escape in the path, 40500 for an unsupported method, 40300 for a read-only
 * token
 */
export function findOperation({ path, id }: Resource<ResourcePath>, method: string, { access }: Caller): Operation {
  if (id === undefined) throw new HttpError('malformedRequest', 'The path contains a malformed percent-escape.')
  const methods: Readonly<Record<string, Operation>> = OPERATIONS[path]
  const operation = Object.hasOwn(methods, method) ? methods[method] : undefined
  if (operation === undefined) throw new HttpError('methodNotAllowed', undefined, allowHeader(path))
  if (operation.access === 'write' && access !== 'write') throw HTTP_ERRORS.readOnlyToken
  return operation
}

export const methodsOf = (path: ResourcePath): readonly string[] => [...Object.keys(OPERATIONS[path]), 'OPTIONS']

const allowHeader = (path: ResourcePath): readonly string[] => ['Allow', methodsOf(path).join(', ')]

function handleList({ store, listLimiter, maxLimit }: Service, input: OperationInput): MaybePromise<HttpResponse> {
  const { owner, resource, response: client } = input
  const { limit, after, includesId } = parseListQuery(resource.query, maxLimit)
  const list: ListRequest = { owner, store, listLimiter, client, limit, after, includesId }
  return chain(listPlants(list), createListResponse, list)
}

function createListResponse({ body, cursor }: ListResult, { limit, includesId }: ListRequest): HttpResponse {
  if (cursor === undefined) return createResponse(200, EMPTY_HEADERS, body)
  const include = includesId ? '&include=id' : ''
  // Resolvers that follow RFC 2396, such as java.net.URI, drop the last path segment if a reference consists only of a
  // query.
  return createResponse(200, ['Link', `<plants?limit=${limit}&after=${cursor}${include}>; rel="next"`], body)
}

function handleCreate(service: Service, input: OperationInput, body: Uint8Array): MaybePromise<HttpResponse> {
  const plant = parseNewPlant(parseJson(body), body.length)
  return service.validatePlant === undefined ? storePlant(plant, service, input) : storeIfValid(plant, service, input)
}

/** A separate function, so that services without `validate` don't pay for the closure. */
function storeIfValid(plant: NewPlant, service: Service, input: OperationInput): MaybePromise<HttpResponse> {
  const { owner, request } = input
  return chain(service.validatePlant!(plant, { owner, request }), () => storePlant(plant, service, input))
}

const storePlant = (plant: NewPlant, { store }: Service, { owner }: OperationInput): MaybePromise<HttpResponse> =>
  chain(store.create(owner, plant), createPlantResponse, plant)

function createPlantResponse(isCreated: boolean, plant: NewPlant): HttpResponse {
  return isCreated ? createResponse(200, EMPTY_HEADERS, `{${closeObject(encodeFields(plant))}`) : HTTP_ERRORS.idTaken
}

const DELETED_RESPONSE = createResponse(204, EMPTY_HEADERS, undefined)

function handleDelete({ store }: Service, { owner, resource }: OperationInput): MaybePromise<HttpResponse> {
  const id = parseInt64(resource.id!)
  if (id === undefined) return new HttpError('invalidId', `The id in the path ${describeInvalidInteger(resource.id!)}.`)
  return chain(store.delete(owner, id), (isDeleted) => (isDeleted ? DELETED_RESPONSE : HTTP_ERRORS.plantNotFound))
}
