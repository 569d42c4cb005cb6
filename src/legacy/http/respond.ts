import { Buffer } from 'node:buffer'
import { type IncomingMessage, ServerResponse } from 'node:http'
import { callSafely, type MaybePromise } from '../maybe-promise.ts'
import { encodeUtf8 } from '../plants/text.ts'
import { yieldToEventLoop } from '../timers.ts'
import { discardBody, isBodyPending } from './body.ts'
import type { ErrorCode } from './errors.ts'
import {
  isClosed,
  isConnected,
  isDisconnected,
  isWritable,
  addResponseListener,
  resetConnection,
  socketOf,
  streamOf,
  onClose,
  type HostRequest,
} from './transport.ts'
import { headerValuesOf, rawHeadersOf } from './header-fields.ts'

const JSON_TYPE = 'application/json'

/** The HTTP/2 error code (RFC 9113 section 7). Importing it would load `node:http2` in every host. */
const CANCEL = 8

/** All members are required, because a missing member could be read from a polluted `Object.prototype`. */
export interface HttpResponse {
  readonly status: number
  /** Name, value, name, value… No name is repeated. */
  readonly headers: readonly string[]
  /** The Content-Type of the body; `application/json` if undefined. */
  readonly contentType: string | undefined
  /**
   * The body in UTF-8: bytes, or text with one character per byte, which can be streamed. Undefined if there is no
   * body.
   */
  readonly body: string | Uint8Array | AsyncIterable<string> | undefined
  readonly error: ErrorCode | undefined
  /** If false, the response has `Cache-Control: no-store`. */
  readonly allowsCaching: boolean
}

/** Creates a JSON or empty response that isn't an error. */
export function createResponse<Body extends HttpResponse['body']>(
  status: number,
  headers: readonly string[],
  body: Body,
): HttpResponse & { readonly body: Body } {
  return { status, headers, contentType: undefined, body, error: undefined, allowsCaching: false }
}

export function jsonResponse(value: object): HttpResponse & { readonly body: string } {
  return createResponse(200, [], encodeUtf8(JSON.stringify(value)))
}

/** Describes a response and how much of it was sent. */
export interface BaseResponseEvent {
  /** The request that the response belongs to. */
  readonly request: HostRequest
  readonly resource: string | undefined
  /** The status of the response, even if the client disconnected before the response was sent. */
  readonly status: number
  /** The `error` member of an error response, such as 40401; undefined for other responses. */
  readonly error: ErrorCode | undefined
  /** The number of bytes of the body that were sent; 0 if the client disconnected before any were sent. */
  readonly bytes: number
  /** Whether the complete response was sent. If not, the client disconnected or the response was aborted. */
  readonly complete: boolean
  /** The time in milliseconds from when the service received the request header until the response ended. */
  readonly durationMs: number
}

export interface SendResult {
  readonly bytes: number
  readonly complete: boolean
  /** An error that the body or middleware threw after the response header had been sent. */
  readonly failure: { readonly error: unknown } | undefined
}

const UNSENT: SendResult = { bytes: 0, complete: false, failure: undefined }

/**
 * Sends a response, unless the host has already sent one or the client has disconnected. Supports middleware that
 * replaces methods of the response to read header fields, write to another stream, or delay the end.
 * @throws the error that the body or middleware throws, if that happens before the response header is sent
 */
export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  result: HttpResponse,
): MaybePromise<SendResult> {
  const mayBeEarly = result.status >= 400 && isBodyPending(request)
  return mayBeEarly ? sendInNextTick(request, response, result) : send(request, response, result, false)
}

/** Node emits a request before it parses a body in the same packet, so the body might be complete in the next tick. */
async function sendInNextTick(
  request: IncomingMessage,
  response: ServerResponse,
  result: HttpResponse,
): Promise<SendResult> {
  await yieldToEventLoop()
  // If the rest of the packet was malformed, `node:http` has already sent its own error response.
  if (!isWritable(socketOf(request))) return UNSENT
  return send(request, response, result, isBodyPending(request))
}

/** @param isEarly whether this is an error response to a request whose body is still arriving */
function send(request: IncomingMessage, response: ExtendedResponse, result: HttpResponse, isEarly: boolean) {
  if (response.headersSent || isClosed(response)) return UNSENT
  const stream = streamOf(response)
  // Some Node versions leak a stream that the client resets, unless the stream is destroyed or its request is read.
  if (stream?.endAfterHeaders === true) stream.resume()
  stream?.once('aborted', stream.destroy.bind(stream))
  if (hasAmbiguousFraming(request)) response.setHeader('Connection', 'close')
  const { status, body } = result
  const isBuffered = typeof body !== 'object' || body instanceof Uint8Array
  if (body === undefined) removeHeader(response, 'Content-Type')
  if (body === undefined || !isBuffered) removeHeader(response, 'Content-Length')
  const headers = buildHeaders(result, response[EXTRA_HEADERS])
  const isHeadRequest = request.method === 'HEAD'
  if (!isBuffered && !isHeadRequest) return streamBody(request, response, status, headers, body)

  const content = isBuffered && !isHeadRequest ? body : undefined
  const bytes = content?.length ?? 0
  try {
    if (isEarly && stream === undefined) headers.push('Connection', 'close')
    writeHead(response, status, headers)
    const isBodyArriving = isEarly && isConnected(request)
    const mustDelayEnd = isBodyArriving && stream === undefined
    if (!mustDelayEnd) end(response, content)
    // Send the response now, but delay its end, which closes the connection, until the client has sent its body.
    else if (content === undefined) response.flushHeaders()
    else writeAndFlush(response, content)
    if (isBodyArriving) endAfterBody(request, response)
    return { bytes, complete: true, failure: undefined }
  } catch (error) {
    return abortOrThrow(request, response, response.writableEnded ? bytes : 0, error)
  }
}

function buildHeaders(result: HttpResponse, extraHeaders: readonly string[] | undefined): string[] {
  const { headers, body, contentType = JSON_TYPE, allowsCaching } = result
  const length = typeof body === 'string' || body instanceof Uint8Array ? String(body.length) : undefined
  // RFC 9111 forbids shared caches from storing responses to requests with Authorization, but nginx stores them by
  // default.
  let allHeaders: string[]
  if (length !== undefined && !allowsCaching) {
    // Most responses take this path: creating an array with all its items is faster than appending to it.
    allHeaders = ['Cache-Control', 'no-store', 'Content-Type', contentType, 'Content-Length', length]
  } else {
    allHeaders = allowsCaching ? [] : ['Cache-Control', 'no-store']
    if (body !== undefined) allHeaders.push('Content-Type', contentType)
    if (length !== undefined) allHeaders.push('Content-Length', length)
  }
  // Spreading an empty array is slower than checking its length.
  if (headers.length > 0) allHeaders.push(...headers)
  if (extraHeaders !== undefined) allHeaders.push(...extraHeaders)
  return allHeaders
}

function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  discardBody(request, () => {
    const stream = streamOf(response)
    // Only a reset stops the client from sending on a stream. The response has to be complete first (RFC 9113 section
    // 8.1).
    if (stream === undefined)
      callSafely(
        () => response.end(),
        () => abortResponse(request, response),
      )
    // If the client doesn't read the response, the stream never finishes, and `close` without a code would wait for it.
    else if (!request.complete) stream.close(stream.writableFinished ? undefined : CANCEL)
  })
}

/**
 * Whether the response has Node's own methods. If so, no middleware needs to see the header, and faster calls can be
 * used.
 */
function isUnpatched(response: ServerResponse): boolean {
  const { prototype } = ServerResponse
  return (
    response.writeHead === prototype.writeHead &&
    response.setHeader === prototype.setHeader &&
    response.write === prototype.write &&
    response.end === prototype.end
  )
}

const EXTRA_HEADERS: unique symbol = Symbol('headers')
type ExtendedResponse = ServerResponse & { [EXTRA_HEADERS]?: readonly string[] }

/**
 * Adds header fields (name, value, name, value…) to the response that {@link respond} will send. Faster than
 * `setHeader`.
 */
export function addHeaders(response: ExtendedResponse, fields: readonly string[]): void {
  response[EXTRA_HEADERS] = fields
}

/**
 * Sends the response header. Middleware that wraps the response expects `setHeader` and ignores fields that are passed
 * to `writeHead`.
 */
function writeHead(response: ServerResponse, status: number, headers: string[]): void {
  if (isUnpatched(response)) {
    response.writeHead(status, headers)
    return
  }
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i]!, headers[i + 1]!)
  response.writeHead(status)
}

function removeHeader(response: ServerResponse, name: string): void {
  if (response.hasHeader(name)) response.removeHeader(name)
}

/** Converts a body for middleware, which may drop the encoding argument of `write` and `end`. */
function decodeBody(body: string | Uint8Array): string | Uint8Array {
  return typeof body === 'string' ? Buffer.from(body, 'latin1').toString() : body
}

function end(response: ServerResponse, body: string | Uint8Array | undefined): void {
  if (body === undefined) return void response.end()
  if (!isUnpatched(response)) return void response.end(decodeBody(body))
  response.end(body, 'latin1')
}

/** Writes a chunk of the body. Returns whether the next chunk must wait until the response drains. */
function writeChunk(response: ServerResponse, chunk: string | Uint8Array): boolean {
  const canWriteMore = isUnpatched(response) ? response.write(chunk, 'latin1') : response.write(decodeBody(chunk))
  // Middleware that wraps `write` may return undefined and never emit `drain`. Node's own streams keep writing in that
  // case too.
  return (canWriteMore as boolean | undefined) === false
}

function writeAndFlush(response: ServerResponse, body: string | Uint8Array): void {
  writeChunk(response, body)
  // Compression middleware buffers the body until `flush` is called.
  const { flush } = response as { flush?: () => void }
  flush?.call(response)
}

/** Streams a body with backpressure. The header is sent with the first chunk, because reading that chunk may fail. */
async function streamBody(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  headers: string[],
  body: AsyncIterable<string>,
): Promise<SendResult> {
  let bytes = 0
  let resumeWriting = (): void => undefined
  // Use one listener for all chunks. Middleware may attach listeners to a different stream, where `off` can't remove
  // them, so one per chunk would pile up.
  response.on('drain', () => resumeWriting())
  addResponseListener(response, 'close', () => resumeWriting())
  try {
    for await (const chunk of body) {
      if (isClosed(response)) return { bytes, complete: false, failure: undefined }
      if (bytes === 0) writeHead(response, status, headers)
      const drained = new Promise<void>((resolve) => (resumeWriting = resolve))
      const mustWait = writeChunk(response, chunk)
      bytes += chunk.length
      if (mustWait) await drained
    }
    return { bytes, complete: await finishResponse(request, response), failure: undefined }
  } catch (error) {
    return abortOrThrow(request, response, bytes, error)
  }
}

/**
 * Aborts the response after an error from the body or from middleware. @throws the error, if nothing has been sent yet
 */
function abortOrThrow(request: IncomingMessage, response: ServerResponse, bytes: number, thrown: unknown): SendResult {
  if (bytes === 0 && !response.headersSent) throw thrown
  const complete = response.writableEnded
  if (!complete) abortResponse(request, response)
  return { bytes, complete, failure: { error: thrown } }
}

function finishResponse(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => {
    addResponseListener(response, 'finish', () => {
      // The HTTP/2 compatibility API, and Node 20 and 22, emit `finish` even if the client has disconnected.
      resolve(streamOf(response)?.writableFinished ?? !isDisconnected(socketOf(request)))
    })
    // The client might have disconnected while the last chunk was waiting to be sent.
    onClose(response, () => resolve(false))
    response.end()
  })
}

/** Whether Node and a proxy may disagree on where the request ends, which allows request smuggling. */
export function hasAmbiguousFraming(request: IncomingMessage): boolean {
  const rawHeaders = rawHeadersOf(request)
  // After a request with Upgrade, Node discards the remaining data that it has read.
  if (headerValuesOf(rawHeaders, 'upgrade').length > 0) return true
  const codings = headerValuesOf(rawHeaders, 'transfer-encoding')
  // HTTP/1.0 doesn't have transfer codings. Together with an empty coding, Node 20 also accepts a Content-Length (RFC
  // 9112 section 6.1).
  return codings.some((coding) => request.httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked')
}

/** Aborts a response so that the client notices that it is incomplete. */
function abortResponse(request: IncomingMessage, response: ServerResponse): void {
  // An HTTP/2 response looks complete if its stream ends without an error.
  const stream = streamOf(response)
  if (stream !== undefined) return void stream.destroy(new Error('The response was aborted before it was complete'))
  // An HTTP/1.0 response ends when the connection closes (RFC 9112 section 6.3), so only a reset shows that data is
  // missing. Node sends such responses to requests of all versions except 1.1. An aborted HTTP/1.1 response already
  // lacks its last chunk. Its connection isn't reset, because complete responses might still be queued on it.
  if (request.httpVersion !== '1.1' && response.socket) resetConnection(response.socket)
  response.destroy()
}
