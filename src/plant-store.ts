import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { readBearerToken } from './http/bearer.ts'
import { NOTHING, readBody, takeParsedBody } from './http/body.ts'
import { checkContent } from './http/content.ts'
import { ERRORS, HTTP_ERRORS, HttpError } from './http/errors.ts'
import { rawHeadersOf, readHeaderFields } from './http/header-fields.ts'
import { respond, type HttpResponse, type Sent } from './http/respond.ts'
import { createRouter, type Resource } from './http/route.ts'
import type { HostRequest } from './http/transport.ts'
import { arrivalOf, inTurn } from './http/turn.ts'
import { andThen, attempt, type MaybePromise } from './maybe-promise.ts'
import { describeMethods, findOperation, RESOURCE_PATHS, type ResourcePath, type Service } from './operations.ts'
import { quote } from './option-checks.ts'
import { resolveOptions, type PlantStoreOptions, type ResolvedOptions } from './options.ts'
import { checkStore } from './plants/checked-store.ts'
import { ListSlots } from './plants/list-slots.ts'
import { StoreUnavailableError } from './plants/store.ts'

/**
 * Serves the requests for plants. It is a listener for `node:http`, `node:https` and the compatibility API of
 * `node:http2`, and a middleware: a path that the service does not have goes to `next`, or gets 404 if there is none.
 */
export type PlantStore = (
  request: HostRequest,
  response: ServerResponse | Http2ServerResponse,
  next?: () => void,
) => void

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly resource: Resource<ResourcePath> | undefined
  /** By `performance.now()`; 0 if the host has no `onResponse`. */
  readonly startedAt: number
  owner: string | undefined
}

/**
 * Makes a service that keeps plants.
 * @throws TypeError if an option is wrong; it names the option and quotes what it got
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createPlantStore } from 'plant-store'
 *
 * const plants = createPlantStore({ tokens: { 'a-long-random-token': 'ada' }, onError: (error) => console.error(error) })
 *
 * createServer(plants).listen(3000)
 */
export function createPlantStore(options: PlantStoreOptions): PlantStore {
  const resolved = resolveOptions(options)
  const route = createRouter(resolved.basePath, RESOURCE_PATHS)
  const serve = createService(resolved)

  return (request, response, next) => {
    checkNodePair(request, response)
    const resource = route(request.url!)
    if (resource === undefined && next !== undefined) return next()
    // The compatibility API of HTTP/2 has all members that the service uses.
    serve(request as IncomingMessage, response as ServerResponse, resource)
  }
}

/** Makes the service behind {@link createPlantStore}, for a caller that routes its requests. */
export function createService(
  options: ResolvedOptions,
): (request: IncomingMessage, response: ServerResponse, resource: Resource<ResourcePath> | undefined) => void {
  const { basePath, findCaller, storeTimeoutMs, maxBodyBytes, onError, onResponse, ...settings } = options
  const service: Service = {
    ...settings,
    store: checkStore(settings.store, storeTimeoutMs),
    slots: new ListSlots(settings.maxListsPerOwner, storeTimeoutMs),
  }

  const message = ERRORS.noResource.message.replace('/plants', () => `${basePath}/plants`)
  const noResource = new HttpError('noResource', message)

  function serve(exchange: Exchange, part: () => MaybePromise<HttpResponse | undefined>): void {
    attempt(
      () => andThen(part(), (found) => found && send(exchange, found)),
      (thrown) => fail(exchange, thrown),
    )
  }

  /** The way of a request, from its path to its response; undefined if it goes on once the body is there. */
  function carryOut(exchange: Exchange): MaybePromise<HttpResponse | undefined> {
    const { request, response, resource } = exchange
    if (resource === undefined) return noResource
    const fields = readHeaderFields(rawHeadersOf(request))
    const { path, id, query } = resource
    if (request.method === 'OPTIONS' && id !== undefined) return describeMethods(path)
    const token = readBearerToken(fields.authorization)
    return andThen(findCaller(token, request), (caller) => {
      if (caller === undefined) return HTTP_ERRORS.tokenRefused
      const { owner } = caller
      exchange.owner = owner
      const operation = findOperation(resource, request.method!, caller)
      const run = (body: Uint8Array) => operation.run(service, { owner, id: id!, query, body, response })
      if (operation.takesBody !== true) return run(NOTHING)

      checkContent(fields.contentType, fields.contentEncoding)
      const parsed = takeParsedBody(request, maxBodyBytes)
      if (parsed !== undefined) return run(parsed)
      const goOn = (body: Uint8Array) => serve(exchange, () => run(body))
      readBody(request, fields.contentLength, maxBodyBytes, goOn, (error) => fail(exchange, error))
      return undefined
    })
  }

  function send(exchange: Exchange, found: HttpResponse): MaybePromise<void> {
    return andThen(respond(exchange.request, exchange.response, found), (sent) => conclude(exchange, found, sent))
  }

  function conclude(exchange: Exchange, { status, error }: HttpResponse, { bytes, complete, failure }: Sent): void {
    if (failure !== undefined) report(exchange, failure.thrown)
    if (onResponse === undefined) return
    const { request, owner, startedAt } = exchange
    const resource = exchange.resource?.path
    const durationMs = performance.now() - startedAt
    attempt(() => onResponse({ request, resource, owner, status, error, bytes, complete, durationMs }))
  }

  function fail(exchange: Exchange, thrown: unknown): void {
    // No owner is known: authenticate itself has failed.
    const failure = toHttpError(thrown, exchange.owner !== undefined)
    const isFault = failure.status === 500 || failure.status === 503
    if (isFault) report(exchange, failure.cause)
    attempt(
      () => send(exchange, failure),
      // A middleware has replaced methods of the response, and those throw.
      (thrown) => {
        exchange.response.destroy()
        conclude(exchange, failure, { bytes: 0, complete: false, ...(!isFault && { failure: { thrown } }) })
      },
    )
  }

  function report({ request }: Exchange, thrown: unknown): void {
    attempt(() => onError(thrown, request))
  }

  return (request, response, resource) => {
    inTurn(request, response, () => {
      const startedAt = onResponse === undefined ? 0 : arrivalOf(response)
      const exchange: Exchange = { request, response, resource, startedAt, owner: undefined }
      serve(exchange, () => carryOut(exchange))
    })
  }
}

/** A host may have made up both, so this checks the least that tells them from others. */
function checkNodePair(request: { url?: unknown } | undefined, response: { writeHead?: unknown } | undefined): void {
  if (typeof request?.url === 'string' && typeof response?.writeHead === 'function') return
  const needed = 'the request and the response of node:http, which a framework has inside of its own'
  const got = [request, response].map(quote).join(', ')
  throw new TypeError(`plant-store needs ${needed}, not (${got}): see docs/host-examples.md`)
}

/** The error that a client gets. An error of a host may carry a status too, which does not count. */
function toHttpError(thrown: unknown, isStoreAsked: boolean): HttpError {
  if (thrown instanceof HttpError) return thrown
  if (!(thrown instanceof StoreUnavailableError)) return new HttpError('unexpected', undefined, { cause: thrown })
  const isUnknown = isStoreAsked && thrown.isOutcomeUnknown
  return new HttpError(isUnknown ? 'outcomeUnknown' : 'storeUnavailable', undefined, { cause: thrown })
}
