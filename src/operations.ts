import type { IncomingMessage } from 'node:http'
import type { Access } from './http/authentication.ts'
import { discardBody, readBody, type BodyOptions } from './http/body.ts'
import { HTTP_ERRORS, HttpError, JSON_HEADERS, NO_STORE } from './http/errors.ts'
import { checkBodyHeaders } from './http/header-fields.ts'
import { parseListQuery } from './http/list-query.ts'
import { parseNewPlant } from './http/new-plant.ts'
import type { HttpResponse } from './http/respond.ts'
import type { ResourcePath } from './http/router.ts'
import type { ResolvedOptions } from './options.ts'
import { showValue, withDeadline, type CheckedStore } from './plants/checked-store.ts'
import { listPlants } from './plants/list-plants.ts'
import { encodePlant, INT64_DESCRIPTION, parseInt64, type NewPlant } from './plants/plant.ts'
import { isUnavailable, then, type MaybePromise } from './plants/store.ts'

/** The options of a service, and what is created from them. */
export interface Service extends ResolvedOptions, BodyOptions {
  readonly checkedStore: CheckedStore
}

/** What an operation needs to know of a request. */
export interface OperationInput {
  readonly request: IncomingMessage
  readonly owner: string
  /** The decoded `{id}` of the path; empty if the path has no such segment. */
  readonly id: string
  readonly query: string
}

export interface Operation {
  readonly access: Access
  /** Returns the response, or undefined if the client aborts the request before its body is complete. */
  readonly run: (service: Service, input: OperationInput) => MaybePromise<HttpResponse | undefined>
}

const LIST: Operation = { access: 'read', run: list }

/**
 * All operations, by path and method; every resource also supports OPTIONS. `Allow`, and the errors 405 and 403, are
 * derived from this table.
 */
export const OPERATIONS: Readonly<Record<ResourcePath, Readonly<Record<string, Operation>>>> = {
  '/plants': { GET: LIST, HEAD: LIST, POST: { access: 'write', run: create } },
  '/plants/{id}': { DELETE: { access: 'write', run: remove } },
}

/** Returns the `Allow` header of a resource. */
export const allow = (path: ResourcePath): readonly string[] => [
  'Allow',
  [...Object.keys(OPERATIONS[path]), 'OPTIONS'].join(', '),
]

function create(service: Service, input: OperationInput): MaybePromise<HttpResponse | undefined> {
  const { request, owner } = input
  checkBodyHeaders(request)
  return then(readBody(request, service), (body) => {
    if (body === undefined) return undefined
    const plant = parseNewPlant(body)
    const validated = service.validate === undefined ? undefined : validate(service, plant, input)
    const created = then(validated, () => service.checkedStore.create(owner, plant))
    return then(created, (isCreated) =>
      isCreated ? { status: 200, headers: JSON_HEADERS, body: encodePlant(plant, false) } : HTTP_ERRORS.idTaken,
    )
  })
}

/** @throws HttpError 40002 if the plant breaks one of the host's rules, 50300 if it can't be checked now */
async function validate({ validate, storeTimeoutMs }: Service, plant: NewPlant, { owner, request }: OperationInput) {
  try {
    const message: unknown = await withDeadline(validate!(plant, { owner, request }), storeTimeoutMs, 'validate')
    if (message === undefined || message === null || message === '') return
    if (typeof message === 'string') throw new HttpError('invalidPlant', message)
    throw new TypeError(`validate must return a message or nothing, or a promise of either, not ${showValue(message)}`)
  } catch (error) {
    // The store hasn't been called yet, so nothing was done.
    throw isUnavailable(error) ? new HttpError('storeUnavailable', undefined, undefined, error) : error
  }
}

function list({ checkedStore, maxLimit }: Service, { owner, query }: OperationInput): MaybePromise<HttpResponse> {
  const listQuery = parseListQuery(query, maxLimit)
  return then(listPlants(checkedStore, owner, listQuery), ({ body, bytes, cursor }) => {
    if (cursor === undefined) return { status: 200, headers: JSON_HEADERS, body, bytes }
    const { limit, includesId } = listQuery
    // A reference that is only a query would resolve to another path in java.net.URI, which follows RFC 2396.
    const next = `plants?limit=${limit}&after=${cursor}${includesId ? '&include=id' : ''}`
    return { status: 200, headers: [...JSON_HEADERS, 'Link', `<${next}>; rel="next"`], body, bytes }
  })
}

function remove({ checkedStore }: Service, input: OperationInput): MaybePromise<HttpResponse | undefined> {
  const { request, owner } = input
  const id = parseInt64(input.id)
  if (id === undefined) throw new HttpError('invalidId', `The id in the path must be ${INT64_DESCRIPTION}.`)
  // The body is ignored, but the client might still abort the request.
  return then(discardBody(request), (isComplete) => {
    if (!isComplete) return undefined
    return then(checkedStore.delete(owner, id), (isDeleted) => (isDeleted ? DELETED : HTTP_ERRORS.plantNotFound))
  })
}

const DELETED: HttpResponse = { status: 204, headers: NO_STORE, body: undefined }
