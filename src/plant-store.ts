import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { performance } from 'node:perf_hooks'
import { readBearerToken } from './http/authentication.ts'
import { BODY_PARSER_HINT, isClosed, isTruncated, type HostRequest } from './http/body.ts'
import { ERRORS, HTTP_ERRORS, HttpError } from './http/errors.ts'
import { checkHeader } from './http/header-fields.ts'
import { send, type HttpResponse, type SendResult } from './http/respond.ts'
import { route, type Resource } from './http/router.ts'
import { whenItsTurn } from './http/turn.ts'
import { allow, OPERATIONS, type Service } from './operations.ts'
import { resolveOptions, warnOnce, type PlantStoreOptions } from './options.ts'
import { createCheckedStore, showValue } from './plants/checked-store.ts'
import { isUnavailable, then, type MaybePromise } from './plants/store.ts'

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

/** A request with its response. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly resource: Resource | undefined
  /** From `performance.now()`; 0 unless the host has an `onResponse`. */
  readonly startedAt: number
  /** The owner, once the token has been accepted. */
  owner: string | undefined
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
  const resolved = resolveOptions(options)
  const warn = warnOnce()
  const service: Service = {
    ...resolved,
    checkedStore: createCheckedStore(resolved.store, resolved.storeTimeoutMs),
    onParsedObject: () =>
      warn(`A body parser ran before plant-store. Parsers round ids beyond 2^53: ${BODY_PARSER_HINT}`),
  }

  const run = (exchange: Exchange): void => serve(service, exchange)

  return (request, response, next) => {
    checkNodeObjects(request, response)
    const resource = route(service.basePath, request.url!)
    if (resource === undefined && next !== undefined) return next()
    const exchange: Exchange = {
      // The compatibility API of HTTP/2 has all members that the service uses.
      request: request as IncomingMessage,
      response: response as ServerResponse,
      resource,
      startedAt: service.onResponse === undefined ? 0 : performance.now(),
      owner: undefined,
    }
    whenItsTurn(exchange, run)
  }
}

/** Tests and serverless adapters create these objects themselves, so their classes aren't checked. */
function checkNodeObjects(request: { url?: unknown } | undefined, response: { writeHead?: unknown } | undefined): void {
  if (typeof request?.url === 'string' && typeof response?.writeHead === 'function') return
  const received = [request, response].map(showValue).join(', ')
  const hint = 'pass the raw objects that your framework wraps, see docs/frameworks.md'
  throw new TypeError(`plant-store must be called with a node:http request and response, not (${received}): ${hint}`)
}

/** Handles a request whose turn has come. Never throws. */
function serve(service: Service, exchange: Exchange): void {
  // Node also emits requests that follow the last response of a connection, and requests whose connection is lost.
  if (isClosed(exchange.response)) return
  try {
    const finished = then(handle(service, exchange), (result) => sendAndReport(service, exchange, result))
    if (finished instanceof Promise) finished.catch((error: unknown) => handleError(service, exchange, error))
  } catch (error) {
    handleError(service, exchange, error)
  }
}

/** The steps of a request, in the order of the contract. Returns undefined if the client aborts the request. */
function handle(service: Service, exchange: Exchange): MaybePromise<HttpResponse | undefined> {
  const { request, resource } = exchange
  if (resource === undefined) {
    const message = ERRORS.pathNotFound.message.replace('/plants', () => `${service.basePath}/plants`)
    return new HttpError('pathNotFound', message)
  }
  const { path, id, query } = resource
  checkHeader(request)
  if (request.method === 'OPTIONS' && id !== undefined) return { status: 204, headers: allow(path), body: undefined }
  const token = readBearerToken(request)
  if (typeof token !== 'string') return token

  return then(service.authenticate(token, request), (caller) => {
    if (caller === undefined) return HTTP_ERRORS.invalidToken
    const { owner, access } = caller
    exchange.owner = owner
    if (id === undefined) throw new HttpError('malformedRequest', 'The path contains a malformed percent-escape.')
    const methods = OPERATIONS[path]
    const operation = Object.hasOwn(methods, request.method!) ? methods[request.method!] : undefined
    if (operation === undefined) throw new HttpError('methodNotAllowed', undefined, allow(path))
    if (operation.access === 'write' && access !== 'write') return HTTP_ERRORS.readOnlyToken
    return operation.run(service, { request, owner, id, query })
  })
}

/** Sends the response and reports it. Without one, the client has aborted the request before it was complete. */
function sendAndReport(service: Service, exchange: Exchange, result: HttpResponse | undefined): MaybePromise<void> {
  if (result === undefined) return
  return then(send(exchange.request, exchange.response, result), (sent) => report(service, exchange, result, sent))
}

/** Sends an error response, and passes the error to the host unless the client caused it. */
function handleError(service: Service, exchange: Exchange, thrown: unknown): void {
  const { request, response } = exchange
  const error = toHttpError(thrown, exchange.owner !== undefined)
  const isFault = error.status === 500 || error.status === 503
  if (isFault) callSafely(() => service.onError(error.cause, request))
  try {
    void sendAndReport(service, exchange, error)
  } catch (sendError) {
    // Middleware has replaced methods of the response with methods that throw.
    const failure = isFault ? {} : { failure: { error: sendError } }
    report(service, exchange, error, { bytes: 0, complete: false, ...failure })
    response.destroy()
  }
}

/** Converts anything thrown into an error response. Only the service's own error classes can set the status. */
function toHttpError(error: unknown, isAuthenticated: boolean): HttpError {
  if (error instanceof HttpError) return error
  if (!isUnavailable(error)) return new HttpError('internalError', undefined, undefined, error)
  // An error from `authenticate` came before any call to the store.
  const isOutcomeUnknown = isAuthenticated && error.isOutcomeUnknown
  return new HttpError(isOutcomeUnknown ? 'outcomeUnknown' : 'storeUnavailable', undefined, undefined, error)
}

function report(service: Service, exchange: Exchange, { status, error }: HttpResponse, sent: SendResult): void {
  const { onError, onResponse } = service
  const { request, resource, owner, startedAt } = exchange
  const { bytes, complete, failure } = sent
  if (failure !== undefined) callSafely(() => onError(failure.error, request))
  if (onResponse === undefined) return
  // The client has aborted the request, and nothing was done.
  if (!complete && error !== undefined && isTruncated(request)) return
  const durationMs = performance.now() - startedAt
  callSafely(() => onResponse({ request, resource: resource?.path, owner, status, error, bytes, complete, durationMs }))
}

/** Calls one of the host's observers. Errors that it throws or rejects with don't affect the response. */
function callSafely(call: () => unknown): void {
  new Promise((resolve) => resolve(call())).catch(() => undefined)
}
