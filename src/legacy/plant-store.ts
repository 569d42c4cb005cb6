import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import process from 'node:process'
import { readBearerToken } from './http/bearer.ts'
import { BODY_PARSER_HINT, isBodyPending, EMPTY_BODY, readBody, readParsedBody } from './http/body.ts'
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
 * Handles requests to `/plants`. Works as a request listener for `node:http`, `node:https` and the compatibility API of
 * `node:http2`, and as middleware. If the path isn't a resource, it calls `next`, or responds with 404 if there is no
 * `next`.
 */
export type PlantStore = (
  request: HostRequest,
  response: ServerResponse | Http2ServerResponse,
  next?: () => void,
) => void

/**
 * Per-request state, filled in step by step. Each step gets the state as an argument, which is cheaper than a closure.
 */
interface RequestContext extends QueuedRequest {
  readonly resource: Resource<ResourcePath> | undefined
  /** The `performance.now()` time at which the request arrived; 0 if the host has no `onResponse`. */
  startedAt: number
  headers: HeaderFields | undefined
  owner: string | undefined
  operation: Operation | undefined
  result: HttpResponse | undefined
  /** Whether the operation has started. Requests that are aborted before that aren't reported. */
  hasStarted: boolean
}

/**
 * Creates a request listener that serves `/plants`: it authenticates requests, and creates, lists and deletes plants in
 * a {@link Store}.
 * @throws TypeError if an option is invalid; the message names the option and its value, but never a token
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createPlantStore } from 'plant-store'
 *
 * const plants = createPlantStore({
 *   tokens: { 'a-long-random-token': 'ada' },
 *   onError: (error) => console.error(error),
 * })
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

/** Creates the request handler of {@link createPlantStore}, for callers that have already matched the path. */
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
    process.emitWarning(
      `A body parser ran before plant-store. Parsers round ids beyond 2^53: ${BODY_PARSER_HINT}`,
      'PlantStoreWarning',
    )
  }

  const notFoundMessage = ERRORS.pathNotFound.message.replace('/plants', () => `${basePath}/plants`)
  const notFound = new HttpError('pathNotFound', notFoundMessage)

  function serve(context: RequestContext): void {
    if (onResponse !== undefined) context.startedAt = arrivedAt(context.response)
    callSafely(handleAndSend, handleError, context)
  }

  const handleAndSend = (context: RequestContext): MaybePromise<void> => chain(handle(context), send, context)

  /** Returns the response, or undefined if the body hasn't arrived yet or the client has disconnected. */
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
    // The client disconnected while `authenticate` ran, so a body that a parser has read by then might be truncated.
    if (access === 'write' && isTruncated(context.request)) {
      // plant-store/server rejects a malformed body, and closes the connection, only when the body is read.
      context.request.resume()
      return undefined
    }
    if (hasBody) return receiveBody(context)
    return mustAwaitBody(context) ? awaitBody(context) : execute(EMPTY_BODY, context)
  }

  /**
   * Whether a write that ignores its body must wait for that body, because the client might still abort the request.
   */
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
    // The client aborted the request before it was complete: such requests aren't reported.
    if (!complete && !hasStarted && isTruncated(request)) return
    const { status, error } = context.result!
    const resource = context.resource?.path
    const durationMs = performance.now() - startedAt
    callSafely(onResponse, undefined, { request, resource, owner, status, error, bytes, complete, durationMs })
  }

  function handleError(error: unknown, context: RequestContext): void {
    // Without an owner, the error came from `authenticate`, before any call to the store.
    const httpError = toHttpError(error, context.owner !== undefined)
    const isServerError = httpError.status === 500 || httpError.status === 503
    if (isServerError) reportError(httpError.cause, context)
    callSafely(
      () => send(httpError, context),
      // Middleware has replaced methods of the response with methods that throw.
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
    const context: RequestContext = {
      request,
      response,
      resource,
      startedAt: 0,
      headers: undefined,
      owner: undefined,
      operation: undefined,
      result: undefined,
      hasStarted: false,
    }
    runInOrder(context, serve)
  }
}

/** Tests and serverless adapters create these objects themselves, so their classes aren't checked. */
function checkNodeObjects(request: { url?: unknown } | undefined, response: { writeHead?: unknown } | undefined): void {
  if (typeof request?.url === 'string' && typeof response?.writeHead === 'function') return
  const received = [request, response].map(formatValue).join(', ')
  const hint = 'pass the raw objects that your framework wraps, see docs/frameworks.md'
  throw new TypeError(`plant-store must be called with a node:http request and response, not (${received}): ${hint}`)
}

/** Converts anything thrown into an error response. Only the service's own error classes can set the status. */
function toHttpError(error: unknown, hasCalledStore: boolean): HttpError {
  if (error instanceof HttpError) return error
  if (!(error instanceof StoreUnavailableError)) return new HttpError('internalError', undefined, undefined, error)
  const isOutcomeUnknown = hasCalledStore && error.isOutcomeUnknown
  return new HttpError(isOutcomeUnknown ? 'outcomeUnknown' : 'storeUnavailable', undefined, undefined, error)
}
