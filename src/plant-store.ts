import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import process from 'node:process'
import { readBearerToken } from './http/bearer.ts'
import { isBodyAwaited, NOTHING, readBody, takeParsedBody } from './http/body.ts'
import type { Caller } from './http/caller.ts'
import { checkContent } from './http/content.ts'
import { ERRORS, HTTP_ERRORS, HttpError } from './http/errors.ts'
import { rawHeadersOf, readHeaderFields, type HeaderFields } from './http/header-fields.ts'
import { checkValidate } from './http/new-plant.ts'
import { respond, type HttpResponse, type Sent } from './http/respond.ts'
import { createRouter, type Resource } from './http/route.ts'
import { isClosed, isTruncated, whenClosed, type HostRequest } from './http/transport.ts'
import { arrivalOf, inTurn, type Arrival } from './http/turn.ts'
import { andThen, attempt, type MaybePromise } from './maybe-promise.ts'
import { describeMethods, findOperation, RESOURCE_PATHS } from './operations.ts'
import type { Operation, OperationInput, ResourcePath, Service } from './operations.ts'
import { quote } from './option-checks.ts'
import { resolveOptions, type PlantStoreOptions, type ResolvedOptions } from './options.ts'
import { checkStore } from './plants/checked-store.ts'
import { parseInt64 } from './plants/int64.ts'
import { ListSlots } from './plants/list-slots.ts'
import { StoreUnavailableError } from './plants/store.ts'
import { performance } from './timers.ts'

/**
 * Serves the requests for plants. It is a listener for `node:http`, `node:https` and the compatibility API of
 * `node:http2`, and a middleware: a path that the service does not have goes to `next`, or gets 404 if there is none.
 */
export type PlantStore = (
  request: HostRequest,
  response: ServerResponse | Http2ServerResponse,
  next?: () => void,
) => void

/** What is known of a request by now. It is handed from step to step, in place of closures. */
interface Exchange extends Arrival {
  readonly resource: Resource<ResourcePath> | undefined
  /** By `performance.now()`; 0 if the host has no `onResponse`. */
  startedAt: number
  fields: HeaderFields | undefined
  owner: string | undefined
  operation: Operation | undefined
  found: HttpResponse | undefined
  /** Whether the operation has started, which needs the whole request. */
  isStarted: boolean
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
  const { basePath, findCaller, storeTimeoutMs, maxBodyBytes, validate, onError, onResponse, ...settings } = options
  const service: Service = {
    ...settings,
    store: checkStore(settings.store, storeTimeoutMs),
    checkRules: validate && checkValidate(validate, storeTimeoutMs),
    slots: new ListSlots(settings.maxListsPerOwner, storeTimeoutMs, { isGone: isClosed, whenGone: whenClosed }),
  }

  let isWarned = false
  function warnOfParser(): void {
    if (isWarned) return
    isWarned = true
    const hint = 'mount plant-store before the body parser, or keep the bytes in request.rawBody'
    process.emitWarning(`A parser has read the body, and parsers round ids beyond 2^53: ${hint}`, 'PlantStoreWarning')
  }

  const message = ERRORS.noResource.message.replace('/plants', () => `${basePath}/plants`)
  const noResource = new HttpError('noResource', message)

  function begin(exchange: Exchange): void {
    if (onResponse !== undefined) exchange.startedAt = arrivalOf(exchange.response)
    attempt(serve, fail, exchange)
  }

  const serve = (exchange: Exchange): MaybePromise<void> => andThen(carryOut(exchange), send, exchange)

  /** The way of a request, from its path to its response; undefined if it goes on once the body is there. */
  function carryOut(exchange: Exchange): MaybePromise<HttpResponse | undefined> {
    const { request, resource } = exchange
    if (resource === undefined) return noResource
    exchange.fields = readHeaderFields(rawHeadersOf(request))
    if (request.method === 'OPTIONS' && resource.id !== undefined) return describeMethods(resource.path)
    const token = readBearerToken(exchange.fields)
    return typeof token === 'string' ? andThen(findCaller(token, request), admit, exchange) : token
  }

  function admit(caller: Caller | undefined, exchange: Exchange): MaybePromise<HttpResponse | undefined> {
    if (caller === undefined) return HTTP_ERRORS.tokenRefused
    exchange.owner = caller.owner
    exchange.operation = findOperation(exchange.resource!, exchange.request.method!, caller)
    const { access, takesBody } = exchange.operation
    // The client disconnected while `authenticate` ran. What a parser has read by then can be a part of the body.
    if (access === 'write' && isTruncated(exchange.request)) {
      // plant-store/server rejects a malformed body, and closes its connection, when the body is read.
      exchange.request.resume()
      return undefined
    }
    if (takesBody) return takeBody(exchange)
    return mustAwaitBody(exchange) ? awaitBody(exchange) : run(NOTHING, exchange)
  }

  /** Whether a write that ignores its body must wait for it, because the client can still abort the request. */
  function mustAwaitBody({ request, resource, operation }: Exchange): boolean {
    // An invalid id is rejected immediately.
    return operation!.access === 'write' && isBodyAwaited(request) && parseInt64(resource!.id!) !== undefined
  }

  function takeBody(exchange: Exchange): MaybePromise<HttpResponse | undefined> {
    const { contentType, contentEncoding } = exchange.fields!
    checkContent(contentType, contentEncoding)
    const parsed = takeParsedBody(exchange.request, maxBodyBytes, warnOfParser)
    return parsed === undefined ? awaitBody(exchange) : run(parsed, exchange)
  }

  function awaitBody(exchange: Exchange): MaybePromise<HttpResponse | undefined> {
    readBody(exchange.request, exchange.fields!.contentLength, maxBodyBytes, (body) => {
      attempt(() => andThen(run(body, exchange), send, exchange), fail, exchange)
    })
    return undefined
  }

  function run(body: Uint8Array | HttpError, exchange: Exchange): MaybePromise<HttpResponse> {
    if (body instanceof HttpError) return body
    exchange.isStarted = true
    return exchange.operation!.run(service, exchange as OperationInput, body)
  }

  function send(found: HttpResponse | undefined, exchange: Exchange): MaybePromise<void> {
    if (found === undefined) return
    exchange.found = found
    return andThen(respond(exchange.request, exchange.response, found), conclude, exchange)
  }

  function conclude({ bytes, complete, failure }: Sent, exchange: Exchange): void {
    if (failure !== undefined) report(failure.thrown, exchange)
    if (onResponse === undefined) return
    const { request, owner, startedAt, isStarted } = exchange
    // A request that its client gave up before it was complete leaves no trace.
    if (!complete && !isStarted && isTruncated(request)) return
    const { status, error } = exchange.found!
    const resource = exchange.resource?.path
    const durationMs = performance.now() - startedAt
    attempt(onResponse, undefined, { request, resource, owner, status, error, bytes, complete, durationMs })
  }

  function fail(thrown: unknown, exchange: Exchange): void {
    // No owner is known: authenticate itself has failed.
    const failure = toHttpError(thrown, exchange.owner !== undefined)
    const isFault = failure.status === 500 || failure.status === 503
    if (isFault) report(failure.cause, exchange)
    attempt(
      () => send(failure, exchange),
      // A middleware has replaced methods of the response, and those throw.
      (thrown) => {
        exchange.response.destroy()
        conclude({ bytes: 0, complete: false, failure: isFault ? undefined : { thrown } }, exchange)
      },
    )
  }

  function report(thrown: unknown, { request }: Exchange): void {
    attempt(() => onError(thrown, request))
  }

  return (request, response, resource) => {
    const none = undefined
    inTurn(
      {
        request,
        response,
        resource,
        startedAt: 0,
        fields: none,
        owner: none,
        operation: none,
        found: none,
        isStarted: false,
      },
      begin,
    )
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
  if (!(thrown instanceof StoreUnavailableError)) return new HttpError('unexpected', undefined, undefined, thrown)
  const isUnknown = isStoreAsked && thrown.isOutcomeUnknown
  return new HttpError(isUnknown ? 'outcomeUnknown' : 'storeUnavailable', undefined, undefined, thrown)
}
