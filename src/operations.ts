import type { ServerResponse } from 'node:http'
import type { Access, Caller } from './http/caller.ts'
import { HTTP_ERRORS, HttpError } from './http/errors.ts'
import { integerProblem } from './http/integer-problem.ts'
import { readJson } from './http/json.ts'
import { parseListQuery } from './http/list-query.ts'
import { parseNewPlant, type ValidationContext } from './http/new-plant.ts'
import { createResponse, type HttpResponse } from './http/respond.ts'
import type { Resource } from './http/route.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import type { CheckedStore } from './plants/checked-store.ts'
import { parseInt64 } from './plants/int64.ts'
import type { ListSlots } from './plants/list-slots.ts'
import { listPlants, type Listing, type PlantList } from './plants/listing.ts'
import { closeRest, encodeRest, type NewPlant } from './plants/plant.ts'

export interface Service {
  readonly store: CheckedStore
  readonly maxLimit: number
  readonly slots: ListSlots
  /** Settles if the plant breaks no rule of the host. */
  readonly checkRules: ((plant: NewPlant, context: ValidationContext) => MaybePromise<void>) | undefined
}

export interface OperationInput extends ValidationContext {
  readonly resource: Resource<ResourcePath>
  readonly response: ServerResponse
}

export interface Operation {
  readonly access: Access
  /** Its body must be JSON, and is read before it runs. */
  readonly takesBody: boolean
  readonly run: (service: Service, input: OperationInput, body: Uint8Array) => MaybePromise<HttpResponse>
}

/** The path of a resource, as the interface description writes it. */
export type ResourcePath = '/plants' | '/plants/{id}'

/** The methods of each resource but OPTIONS, which each of them has. */
export interface ResourceMethods extends Record<ResourcePath, string> {
  readonly '/plants': 'GET' | 'HEAD' | 'POST'
  readonly '/plants/{id}': 'DELETE'
}

const LIST: Operation = { access: 'read', takesBody: false, run: list }

/** All that the service does: path, method, operation. The router, `Allow`, 405 and 403 follow from this table. */
export const OPERATIONS: { readonly [Path in ResourcePath]: Readonly<Record<ResourceMethods[Path], Operation>> } = {
  '/plants': { GET: LIST, HEAD: LIST, POST: { access: 'write', takesBody: true, run: create } },
  '/plants/{id}': { DELETE: { access: 'write', takesBody: false, run: remove } },
}

export const RESOURCE_PATHS: readonly ResourcePath[] = Object.keys(OPERATIONS) as ResourcePath[]

const NO_FIELDS: readonly string[] = []

export function describeMethods(path: ResourcePath): HttpResponse {
  return { ...createResponse(204, allowField(path), undefined), allowsCaching: true }
}

/** @throws HttpError 40000, 40500 or 40300 if the path, the method or the caller does not fit */
export function findOperation({ path, id }: Resource<ResourcePath>, method: string, { access }: Caller): Operation {
  if (id === undefined) throw new HttpError('malformedRequest', 'The path holds a malformed percent-escape.')
  const methods: Readonly<Record<string, Operation>> = OPERATIONS[path]
  const operation = Object.hasOwn(methods, method) ? methods[method] : undefined
  if (operation === undefined) throw new HttpError('methodNotAllowed', undefined, allowField(path))
  if (operation.access === 'write' && access !== 'write') throw HTTP_ERRORS.readOnlyToken
  return operation
}

export const methodsOf = (path: ResourcePath): readonly string[] => [...Object.keys(OPERATIONS[path]), 'OPTIONS']

const allowField = (path: ResourcePath): readonly string[] => ['Allow', methodsOf(path).join(', ')]

function list({ store, slots, maxLimit }: Service, input: OperationInput): MaybePromise<HttpResponse> {
  const { owner, resource, response: client } = input
  const { limit, after, includesId } = parseListQuery(resource.query, maxLimit)
  const list: PlantList = { owner, store, slots, client, limit, after, includesId }
  return andThen(listPlants(list), describeList, list)
}

function describeList({ body, cursor }: Listing, { limit, includesId }: PlantList): HttpResponse {
  if (cursor === undefined) return createResponse(200, NO_FIELDS, body)
  const include = includesId ? '&include=id' : ''
  // Resolvers that follow RFC 2396, such as java.net.URI, drop the last path segment for a reference that is only a query.
  return createResponse(200, ['Link', `<plants?limit=${limit}&after=${cursor}${include}>; rel="next"`], body)
}

function create(service: Service, input: OperationInput, body: Uint8Array): MaybePromise<HttpResponse> {
  const plant = parseNewPlant(readJson(body), body.length)
  return service.checkRules === undefined ? keep(plant, service, input) : keepIfValid(plant, service, input)
}

/** In a function of its own, so that services without rules pay for no closure. */
function keepIfValid(plant: NewPlant, service: Service, input: OperationInput): MaybePromise<HttpResponse> {
  const { owner, request } = input
  return andThen(service.checkRules!(plant, { owner, request }), () => keep(plant, service, input))
}

const keep = (plant: NewPlant, { store }: Service, { owner }: OperationInput): MaybePromise<HttpResponse> =>
  andThen(store.create(owner, plant), describePlant, plant)

function describePlant(isCreated: boolean, plant: NewPlant): HttpResponse {
  return isCreated ? createResponse(200, NO_FIELDS, `{${closeRest(encodeRest(plant))}`) : HTTP_ERRORS.idTaken
}

const DELETED = createResponse(204, NO_FIELDS, undefined)

function remove({ store }: Service, { owner, resource }: OperationInput): MaybePromise<HttpResponse> {
  const id = parseInt64(resource.id!)
  if (id === undefined) return new HttpError('badId', `The id in the path ${integerProblem(resource.id!)}.`)
  return andThen(store.delete(owner, id), (isDeleted) => (isDeleted ? DELETED : HTTP_ERRORS.noPlant))
}
