import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import process from 'node:process'
import { readBearerToken } from './http/bearer.ts'
import { isBodyPending, EMPTY_BODY, readBody, readParsedBody } from './http/body.ts'
import type { Caller } from './http/caller.ts'
import { checkContent } from './http/content.ts'
import { ERRORS, HTTP_ERRORS, HttpError } from './http/errors.ts'
import { rawHeadersOf, readHeaderFields, type HeaderFields } from './http/header-fields.ts'
import { createPlantValidator } from './http/new-plant.ts'
import { respond, type HttpResponse, type SendResult } from './http/respond.ts'
import { createRouter, type Resource } from './http/router.ts'
import { isClosed, isTruncated, onClose, type HostRequest } from './http/transport.ts'
import { arrivedAt, runInOrder, type QueuedRequest } from './http/request-queue.ts'
import { chain, callSafely, type MaybePromise } from './maybe-promise.ts'
import { createOptionsResponse, findOperation, RESOURCE_PATHS } from './operations.ts'
import type { Operation, OperationInput, ResourcePath, Service } from './operations.ts'
import { formatValue } from './option-checks.ts'
import { resolveOptions, type PlantStoreOptions, type ResolvedOptions } from './options.ts'
import { createCheckedStore } from './plants/checked-store.ts'
import { parseInt64 } from './plants/int64.ts'
import { ListLimiter } from './plants/list-limiter.ts'
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
interface RequestContext extends QueuedRequest {
  readonly resource: Resource<ResourcePath> | undefined
  /** By `performance.now()`; 0 if the host has no `onResponse`. */
  startedAt: number
  headers: HeaderFields | undefined
  owner: string | undefined
  operation: Operation | undefined
  result: HttpResponse | undefined
  /** Whether the operation has started, which needs the whole request. */
  hasStarted: boolean
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
  const resolvedOptions = resolveOptions(options)
  const route = createRouter(resolvedOptions.basePath, RESOURCE_PATHS)
  const serve = createService(resolvedOptions)

  return (request, response, next) => {
    checkNodeObjects(request, response)
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
    store: createCheckedStore(settings.store, storeTimeoutMs),
    validatePlant: validate && createPlantValidator(validate, storeTimeoutMs),
    listLimiter: new ListLimiter(settings.maxListsPerOwner, storeTimeoutMs, { isClosed, onClose }),
  }

  let hasWarned = false
  function warnAboutBodyParser(): void {
    if (hasWarned) return
    hasWarned = true
    const hint = 'mount plant-store before the body parser, or keep the bytes in request.rawBody'
    process.emitWarning(`A parser has read the body, and parsers round ids beyond 2^53: ${hint}`, 'PlantStoreWarning')
  }

  const notFoundMessage = ERRORS.pathNotFound.message.replace('/plants', () => `${basePath}/plants`)
  const notFound = new HttpError('pathNotFound', notFoundMessage)

  function startRequest(context: RequestContext): void {
    if (onResponse !== undefined) context.startedAt = arrivedAt(context.response)
    callSafely(serve, handleError, context)
  }

  const serve = (context: RequestContext): MaybePromise<void> => chain(handle(context), send, context)

  /** The way of a request, from its path to its response; undefined if it goes on once the body is there. */
  function handle(context: RequestContext): MaybePromise<HttpResponse | undefined> {
    const { request, resource } = context
    if (resource === undefined) return notFound
    context.headers = readHeaderFields(rawHeadersOf(request))
    if (request.method === 'OPTIONS' && resource.id !== undefined) return createOptionsResponse(resource.path)
    const token = readBearerToken(context.headers)
    return typeof token === 'string' ? chain(findCaller(token, request), authorize, context) : token
  }

  function authorize(caller: Caller | undefined, context: RequestContext): MaybePromise<HttpResponse | undefined> {
    if (caller === undefined) return HTTP_ERRORS.invalidToken
    context.owner = caller.owner
    context.operation = findOperation(context.resource!, context.request.method!, caller)
    const { access, hasBody } = context.operation
    // The client disconnected while `authenticate` ran. What a parser has read by then can be a part of the body.
    if (access === 'write' && isTruncated(context.request)) {
      // plant-store/server rejects a malformed body, and closes its connection, when the body is read.
      context.request.resume()
      return undefined
    }
    if (hasBody) return receiveBody(context)
    return mustAwaitBody(context) ? awaitBody(context) : execute(EMPTY_BODY, context)
  }

  /** Whether a write that ignores its body must wait for it, because the client can still abort the request. */
  function mustAwaitBody({ request, resource, operation }: RequestContext): boolean {
    // An invalid id is rejected immediately.
    return operation!.access === 'write' && isBodyPending(request) && parseInt64(resource!.id!) !== undefined
  }

  function receiveBody(context: RequestContext): MaybePromise<HttpResponse | undefined> {
    const { contentType, contentEncoding } = context.headers!
    checkContent(contentType, contentEncoding)
    const parsedBody = readParsedBody(context.request, maxBodyBytes, warnAboutBodyParser)
    return parsedBody === undefined ? awaitBody(context) : execute(parsedBody, context)
  }

  function awaitBody(context: RequestContext): MaybePromise<HttpResponse | undefined> {
    readBody(context.request, context.headers!.contentLength, maxBodyBytes, (body) => {
      callSafely(() => chain(execute(body, context), send, context), handleError, context)
    })
    return undefined
  }

  function execute(body: Uint8Array | HttpError, context: RequestContext): MaybePromise<HttpResponse> {
    if (body instanceof HttpError) return body
    context.hasStarted = true
    return context.operation!.run(service, context as OperationInput, body)
  }

  function send(result: HttpResponse | undefined, context: RequestContext): MaybePromise<void> {
    if (result === undefined) return
    context.result = result
    return chain(respond(context.request, context.response, result), finish, context)
  }

  function finish({ bytes, complete, failure }: SendResult, context: RequestContext): void {
    if (failure !== undefined) reportError(failure.error, context)
    if (onResponse === undefined) return
    const { request, owner, startedAt, hasStarted } = context
    // A request that its client gave up before it was complete leaves no trace.
    if (!complete && !hasStarted && isTruncated(request)) return
    const { status, error } = context.result!
    const resource = context.resource?.path
    const durationMs = performance.now() - startedAt
    callSafely(onResponse, undefined, { request, resource, owner, status, error, bytes, complete, durationMs })
  }

  function handleError(error: unknown, context: RequestContext): void {
    // No owner is known: authenticate itself has failed.
    const httpError = toHttpError(error, context.owner !== undefined)
    const isServerError = httpError.status === 500 || httpError.status === 503
    if (isServerError) reportError(httpError.cause, context)
    callSafely(
      () => send(httpError, context),
      // A middleware has replaced methods of the response, and those throw.
      (sendError) => {
        context.response.destroy()
        finish({ bytes: 0, complete: false, failure: isServerError ? undefined : { error: sendError } }, context)
      },
    )
  }

  function reportError(error: unknown, { request }: RequestContext): void {
    callSafely(() => onError(error, request))
  }

  return (request, response, resource) => {
    const unset = undefined
    runInOrder(
      {
        request,
        response,
        resource,
        startedAt: 0,
        headers: unset,
        owner: unset,
        operation: unset,
        result: unset,
        hasStarted: false,
      },
      startRequest,
    )
  }
}

/** A host may have made up both, so this checks the least that tells them from others. */
function checkNodeObjects(request: { url?: unknown } | undefined, response: { writeHead?: unknown } | undefined): void {
  if (typeof request?.url === 'string' && typeof response?.writeHead === 'function') return
  const expected = 'the request and the response of node:http, which a framework has inside of its own'
  const got = [request, response].map(formatValue).join(', ')
  throw new TypeError(`plant-store needs ${expected}, not (${got}): see docs/frameworks.md`)
}

/** The error that a client gets. An error of a host may carry a status too, which does not count. */
function toHttpError(error: unknown, hasCalledStore: boolean): HttpError {
  if (error instanceof HttpError) return error
  if (!(error instanceof StoreUnavailableError)) return new HttpError('internalError', undefined, undefined, error)
  const isOutcomeUnknown = hasCalledStore && error.isOutcomeUnknown
  return new HttpError(isOutcomeUnknown ? 'outcomeUnknown' : 'storeUnavailable', undefined, undefined, error)
}
