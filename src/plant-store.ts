import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { checkStore } from './plants/checked-store.ts'
import { andThen, withDeadline } from './maybe-promise.ts'
import { isOwner, OWNER, readBearerToken } from './http/bearer.ts'
import { readBody, takeParsedBody } from './http/body.ts'
import { checkContent } from './http/content.ts'
import { HttpError } from './http/errors.ts'
import { readHeaderFields, type HeaderFields } from './http/header-fields.ts'
import { parseInt64 } from './plants/int64.ts'
import { readJson } from './http/json/reader.ts'
import { parseListQuery } from './http/list-query.ts'
import { parseNewPlant } from './http/new-plant.ts'
import { errorResponse, respond, type HttpResponse } from './http/respond.ts'
import { createRouter, type Resource } from './http/route.ts'
import { inTurn } from './http/turn.ts'
import { listPlants } from './plants/listing.ts'
import { resolveOptions, type PlantStoreOptions } from './options.ts'
import { encodePlant, type NewPlant } from './plants/plant.ts'
import { StoreUnavailableError } from './plants/store.ts'

const NO_FIELDS: readonly string[] = []

const DELETED: HttpResponse = { status: 204, headers: NO_FIELDS, body: undefined }

const ALLOW = { '/plants': 'GET, HEAD, POST, OPTIONS', '/plants/{id}': 'DELETE, OPTIONS' }

/**
 * Answers the requests for plants. A listener for `node:http`, `node:https` and the compatibility API of `node:http2`,
 * and a middleware: with `next`, what is no resource of the service is passed on; without, it is answered 404.
 */
export type PlantStore = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  next?: () => void,
) => void

/**
 * Makes a service that creates, lists and deletes plants.
 * @throws TypeError where an option is wrong; it names the option and quotes what it got
 */
export function createPlantStore(options: PlantStoreOptions): PlantStore {
  const settings = resolveOptions(options)
  const { authenticate, maxBodyBytes, maxLimit, storeTimeoutMs, validate, onError, onResponse } = settings
  const route = createRouter(settings.basePath)
  const store = checkStore(settings.store, storeTimeoutMs)

  function plantStore(
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
    next?: () => void,
  ): void {
    const resource = route(request.url!)
    if (resource === undefined && next !== undefined) return next()
    // What is used of these the compatibility API of HTTP/2 has as well.
    const [req, res] = [request as IncomingMessage, response as ServerResponse]
    inTurn(req, res, () => {
      // Rejects only where a host has put methods of its own into the response, and they throw.
      serve(req, res, resource).catch(() => res.destroy())
    })
  }

  async function serve(request: IncomingMessage, response: ServerResponse, resource?: Resource): Promise<void> {
    const startedAt = onResponse === undefined ? 0 : performance.now()
    let owner: string | undefined
    let answer: HttpResponse | undefined
    let error: number | undefined
    let bytes: number
    try {
      if (resource === undefined) throw new HttpError('noResource')
      const fields = readHeaderFields(request.rawHeaders)
      if (request.method === 'OPTIONS' && resource.id !== undefined) {
        answer = { status: 204, headers: ['Allow', ALLOW[resource.path]], body: undefined }
      } else {
        const found = findOwner(readBearerToken(fields.authorization), request)
        owner = found instanceof Promise ? await found : found
        const operated = operate(owner, resource, request, fields)
        answer = operated instanceof Promise ? await operated : operated
        if (answer === undefined) return
      }
      const responded = respond(request, response, answer)
      bytes = responded instanceof Promise ? await responded : responded
    } catch (thrown) {
      const failure = asHttpError(thrown)
      if (onError !== undefined && (failure.status === 500 || failure.status === 503)) {
        tell(() => onError(thrown, request))
      }
      error = failure.error
      answer = errorResponse(failure)
      bytes = await respond(request, response, answer)
    }
    if (onResponse !== undefined) {
      const { status } = answer
      const durationMs = performance.now() - startedAt
      tell(() => onResponse({ request, resource: resource?.path, owner, status, error, bytes, durationMs }))
    }
  }

  function findOwner(token: string, request: IncomingMessage): string | Promise<string> {
    const found = withDeadline(authenticate(token, request), storeTimeoutMs, () => {
      return new StoreUnavailableError(`authenticate did not answer within ${storeTimeoutMs} ms`)
    })
    return andThen(found, (owner) => {
      if (owner === null || owner === undefined) throw new HttpError('tokenRefused')
      if (!isOwner(owner)) throw new TypeError(`authenticate must answer an owner: ${OWNER}`)
      return owner
    })
  }

  /** @returns undefined where the client went away before its request was complete */
  function operate(
    owner: string,
    resource: Resource,
    request: IncomingMessage,
    fields: HeaderFields,
  ): HttpResponse | Promise<HttpResponse | undefined> {
    if (resource.id === undefined) throw new HttpError('malformedRequest', 'The path holds a malformed percent-escape.')
    const { method } = request
    if (resource.path === '/plants') {
      if (method === 'GET' || method === 'HEAD') return list(owner, resource.query)
      if (method === 'POST') return create(owner, request, fields)
    } else if (method === 'DELETE') {
      return remove(owner, resource.id)
    }
    throw new HttpError('methodNotAllowed', undefined, { headers: ['Allow', ALLOW[resource.path]] })
  }

  function list(owner: string, query: string): HttpResponse | Promise<HttpResponse> {
    const { limit, after } = parseListQuery(query)
    const cap = Math.min(limit, maxLimit)
    return andThen(
      listPlants((page) => store.list(owner, page), { limit: cap, after }),
      ({ body, cursor }) => {
        const headers = cursor === undefined ? NO_FIELDS : ['Link', `<?limit=${cap}&after=${cursor}>; rel="next"`]
        return { status: 200, headers, body }
      },
    )
  }

  async function create(
    owner: string,
    request: IncomingMessage,
    fields: HeaderFields,
  ): Promise<HttpResponse | undefined> {
    checkContent(fields.contentType, fields.contentEncoding)
    const body = takeParsedBody(request, maxBodyBytes) ?? (await readBody(request, fields.contentLength, maxBodyBytes))
    if (body === undefined) return undefined
    const plant = parseNewPlant(readJson(body))
    checkRules(plant)
    return andThen(store.create(owner, plant), (isCreated) => {
      if (!isCreated) throw new HttpError('idTaken')
      return { status: 200, headers: NO_FIELDS, body: encodePlant(plant) }
    })
  }

  function remove(owner: string, text: string): HttpResponse | Promise<HttpResponse> {
    const id = parseInt64(text)
    if (id === undefined) throw new HttpError('badId')
    return andThen(store.delete(owner, id), (isDeleted) => {
      if (!isDeleted) throw new HttpError('noPlant')
      return DELETED
    })
  }

  /** The host's own rules. */
  function checkRules(plant: NewPlant): void {
    const message: unknown = validate?.(plant)
    if (message === undefined || message === null || message === '') return
    if (typeof message !== 'string') throw new TypeError('validate must return a message or nothing')
    throw new HttpError('notPlant', message)
  }

  return plantStore
}

/** What an error is answered. Only the service's own class chooses a status: an error of a host may carry one too. */
function asHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown
  return new HttpError(thrown instanceof StoreUnavailableError ? 'storeUnavailable' : 'unexpected')
}

/** Tells the host, and does not mind whether it throws or rejects: its answer is sent already or must be. */
function tell(host: () => unknown): void {
  new Promise((resolve) => resolve(host())).catch(() => undefined)
}
