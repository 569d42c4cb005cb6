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

/** Every member is required: prototype pollution would add one that is missing. */
export interface HttpResponse {
  readonly status: number
  /** Name, value, name, value… Each name is given once. */
  readonly headers: readonly string[]
  /** The type of the body; `application/json` if undefined. */
  readonly contentType: string | undefined
  /** Text in UTF-8, one character for each byte, whole or in pieces; or its bytes. Undefined if there is no body. */
  readonly body: string | Uint8Array | AsyncIterable<string> | undefined
  readonly error: ErrorCode | undefined
  /** Whether caches can store the response. Others have `Cache-Control: no-store`. */
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

/** What became of a response. */
export interface BaseResponseEvent {
  /** The request that was answered. */
  readonly request: HostRequest
  readonly resource: string | undefined
  /** The status of the response, which a client that had gone before has not seen. */
  readonly status: number
  /** The `error` member of the response's body, such as 40401; undefined if it is no error. */
  readonly error: ErrorCode | undefined
  /** Bytes of the response's body that were handed over; 0 if the client had gone before. */
  readonly bytes: number
  /** Whether all of the response was handed over. If not, the client has gone, or the response broke off half-way. */
  readonly complete: boolean
  /** How long the client has waited: from the arrival of the request's header at the service, in milliseconds. */
  readonly durationMs: number
}

export interface SendResult {
  readonly bytes: number
  readonly complete: boolean
  /** The error of its body, or of a middleware, once its head was handed over. */
  readonly failure: { readonly error: unknown } | undefined
}

const UNSENT: SendResult = { bytes: 0, complete: false, failure: undefined }

/**
 * Sends a response, unless the host has sent one already or the client has gone. A middleware may have replaced methods
 * of the response: it reads the header fields, writes elsewhere, or ends the response later.
 * @throws what the body or a middleware throws before the head: nothing is sent then
 */
export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  result: HttpResponse,
): MaybePromise<SendResult> {
  const mayBeEarly = result.status >= 400 && isBodyPending(request)
  return mayBeEarly ? sendInNextTick(request, response, result) : send(request, response, result, false)
}

/** Node announces a request before it has parsed a body that came in the same packet. */
async function sendInNextTick(
  request: IncomingMessage,
  response: ServerResponse,
  result: HttpResponse,
): Promise<SendResult> {
  await yieldToEventLoop()
  // The rest of the packet can be malformed: then `node:http` has sent its own error response.
  if (!isWritable(socketOf(request))) return UNSENT
  return send(request, response, result, isBodyPending(request))
}

/** @param isEarly whether this refuses a request whose body is still arriving */
function send(request: IncomingMessage, response: ExtendedResponse, result: HttpResponse, isEarly: boolean) {
  if (response.headersSent || isClosed(response)) return UNSENT
  const stream = streamOf(response)
  // Some versions of Node keep a stream that its client has reset until it is destroyed, or its request was read.
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
    // The response goes out now. Its end, after which the connection closes, waits for the client.
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
  // RFC 9111 lets a shared cache store no response to a request with Authorization, but nginx does so by default.
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
    // Nothing but a reset ends the client's side of a stream. Before that the response must be whole (RFC 9113 section 8.1).
    if (stream === undefined)
      callSafely(
        () => response.end(),
        () => abortResponse(request, response),
      )
    // A stream whose client doesn't read its response never finishes it, and `close` without a code would wait for that.
    else if (!request.complete) stream.close(stream.writableFinished ? undefined : CANCEL)
  })
}

/** Whether a response has Node's own methods, so that a faster way changes nothing for a middleware. */
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

/** Adds fields to the head that {@link respond} will send: name, value… `setHeader` would be much slower. */
export function addHeaders(response: ExtendedResponse, fields: readonly string[]): void {
  response[EXTRA_HEADERS] = fields
}

/** Sends the head. Middleware that wraps a response ignores the fields of `writeHead`, and expects `setHeader`. */
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

/** A body for a middleware, which may not pass on an encoding. */
function decodeBody(body: string | Uint8Array): string | Uint8Array {
  return typeof body === 'string' ? Buffer.from(body, 'latin1').toString() : body
}

function end(response: ServerResponse, body: string | Uint8Array | undefined): void {
  if (body === undefined) return void response.end()
  if (!isUnpatched(response)) return void response.end(decodeBody(body))
  response.end(body, 'latin1')
}

/** Writes a piece of the body, and says whether the next one must wait until the response drains. */
function writeChunk(response: ServerResponse, piece: string | Uint8Array): boolean {
  const canWriteMore = isUnpatched(response) ? response.write(piece, 'latin1') : response.write(decodeBody(piece))
  // A middleware that wraps `write` may return nothing, and may never drain then. Streams of Node go on then too.
  return (canWriteMore as boolean | undefined) === false
}

function writeAndFlush(response: ServerResponse, body: string | Uint8Array): void {
  writeChunk(response, body)
  // A middleware that compresses keeps the body until this method is called.
  const { flush } = response as { flush?: () => void }
  flush?.call(response)
}

/** Writes a body piece by piece, as fast as the client reads. The first piece may fail, so the head waits for it. */
async function streamBody(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  headers: string[],
  body: AsyncIterable<string>,
): Promise<SendResult> {
  let bytes = 0
  let resumeWriting = (): void => undefined
  // One listener for the whole body: a middleware may add it to another stream, where `off` does not find it.
  response.on('drain', () => resumeWriting())
  addResponseListener(response, 'close', () => resumeWriting())
  try {
    for await (const piece of body) {
      if (isClosed(response)) return { bytes, complete: false, failure: undefined }
      if (bytes === 0) writeHead(response, status, headers)
      const drained = new Promise<void>((resolve) => (resumeWriting = resolve))
      const mustWait = writeChunk(response, piece)
      bytes += piece.length
      if (mustWait) await drained
    }
    return { bytes, complete: await finishResponse(request, response), failure: undefined }
  } catch (error) {
    return abortOrThrow(request, response, bytes, error)
  }
}

/** Cuts off the rest if the body or a middleware threw. @throws what was thrown, if nothing was sent */
function abortOrThrow(request: IncomingMessage, response: ServerResponse, bytes: number, thrown: unknown): SendResult {
  if (bytes === 0 && !response.headersSent) throw thrown
  const complete = response.writableEnded
  if (!complete) abortResponse(request, response)
  return { bytes, complete, failure: { error: thrown } }
}

function finishResponse(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => {
    addResponseListener(response, 'finish', () => {
      // The compatibility API of HTTP/2, and Node 20 and 22, emit this for a lost client too.
      resolve(streamOf(response)?.writableFinished ?? !isDisconnected(socketOf(request)))
    })
    // The client may have gone while the last piece waited.
    onClose(response, () => resolve(false))
    response.end()
  })
}

/** Whether Node and a proxy before it may disagree on where the request ends. */
export function hasAmbiguousFraming(request: IncomingMessage): boolean {
  const rawHeaders = rawHeadersOf(request)
  // After a request that asks for another protocol, Node drops the rest of what it has read.
  if (headerValuesOf(rawHeaders, 'upgrade').length > 0) return true
  const codings = headerValuesOf(rawHeaders, 'transfer-encoding')
  // HTTP/1.0 has no transfer codings, and beside an empty one Node 20 takes a Content-Length (RFC 9112 section 6.1).
  return codings.some((coding) => request.httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked')
}

/** Ends a response in the middle, so that the client does not take it for a whole one. */
function abortResponse(request: IncomingMessage, response: ServerResponse): void {
  // A stream that ends without an error looks whole.
  const stream = streamOf(response)
  if (stream !== undefined) return void stream.destroy(new Error('The response could not be sent to its end'))
  // So does a response of HTTP/1.0, which ends with its connection (RFC 9112 section 6.3); all but 1.1 get one. That of
  // 1.1 lacks its last chunk, and a reset would take whole responses before it, too.
  if (request.httpVersion !== '1.1' && response.socket) resetConnection(response.socket)
  response.destroy()
}
