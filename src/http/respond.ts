import { Buffer } from 'node:buffer'
import { EventEmitter } from 'node:events'
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { MaybePromise } from '../plants/store.ts'
import { isClosed, streamOf } from './body.ts'
import type { ErrorCode } from './errors.ts'
import { hasAmbiguousFraming, hasBody } from './header-fields.ts'

export interface HttpResponse {
  readonly status: number
  /** Name, value, name, value… Doesn't contain the Content-Length. */
  readonly headers: readonly string[]
  /** The text, or its parts, which are sent as they are read. Undefined if there is no body. */
  readonly body: string | AsyncIterable<string> | undefined
  /** The size of a text in UTF-8, if it's known. */
  readonly bytes?: number | undefined
  readonly error?: ErrorCode
}

export interface SendResult {
  readonly bytes: number
  /** Whether the complete response was sent. If not, the client disconnected or the response was aborted. */
  readonly complete: boolean
  /** An error that the body or middleware threw after the response header had been sent. */
  readonly failure?: { readonly error: unknown }
}

const ADDED_FIELDS: unique symbol = Symbol('plant-store.added-fields')
type ExtendedResponse = ServerResponse & { [ADDED_FIELDS]?: readonly string[] }

/** Adds fields (name, value, name, value…) to a response that {@link send} will send. Faster than `setHeader`. */
export function addFields(response: ExtendedResponse, fields: readonly string[]): void {
  response[ADDED_FIELDS] = fields
}

/**
 * Sends a response, unless the host has already sent one or the client has disconnected. Supports middleware that
 * replaces methods of the response to read header fields, write to another stream, or delay the end.
 * @throws the error that the body or middleware throws, if that happens before the response header is sent
 */
export function send(
  request: IncomingMessage,
  response: ExtendedResponse,
  result: HttpResponse,
): MaybePromise<SendResult> {
  if (response.headersSent || isClosed(response)) return { bytes: 0, complete: false }
  const { status, headers, body } = result
  if (hasAmbiguousFraming(request)) response.setHeader('Connection', 'close')
  // The host might have set fields that describe another body.
  if (body === undefined && response.hasHeader('Content-Type')) response.removeHeader('Content-Type')
  if (typeof body !== 'string' && response.hasHeader('Content-Length')) response.removeHeader('Content-Length')

  const isHead = request.method === 'HEAD'
  const length = typeof body === 'string' ? (result.bytes ?? Buffer.byteLength(body)) : undefined
  const fields = length === undefined ? [...headers] : [...headers, 'Content-Length', String(length)]
  if (response[ADDED_FIELDS] !== undefined) fields.push(...response[ADDED_FIELDS])
  if (typeof body === 'object' && !isHead) return streamBody(request, response, status, fields, body)
  const bytes = isHead ? 0 : (length ?? 0)
  try {
    const endsWithRequest = closesWhileReceiving(request, response)
    writeHead(response, status, fields)
    const content = isHead ? undefined : (body as string | undefined)
    if (endsWithRequest) endWithRequest(request, response, content)
    // A text with as many bytes as characters is ASCII. As Latin-1, Node doesn't have to encode it.
    else response.end(content, length === content?.length ? 'latin1' : 'utf8')
    return { bytes, complete: true }
  } catch (error) {
    return abortOrThrow(request, response, response.writableEnded ? bytes : 0, error)
  }
}

/**
 * Sends the response header. An array of fields saves Node from storing and encoding each field separately, but
 * middleware that wraps the response expects `setHeader`.
 */
function writeHead(response: ServerResponse, status: number, fields: string[]): void {
  const { prototype } = ServerResponse
  const isUnwrapped = response.writeHead === prototype.writeHead && response.setHeader === prototype.setHeader
  if (isUnwrapped) return void response.writeHead(status, fields)
  for (let i = 0; i < fields.length; i += 2) response.setHeader(fields[i]!, fields[i + 1]!)
  response.writeHead(status)
}

/** Whether Node will close the connection after the response although the body of the request is still arriving. */
function closesWhileReceiving(request: IncomingMessage, response: ServerResponse): boolean {
  const isClosing = request.httpVersionMajor === 1 && !response.shouldKeepAlive
  if (!isClosing && response.getHeader('Connection') !== 'close') return false
  return !request.complete && hasBody(request)
}

/**
 * Sends a response, and ends it when the request ends: a client that is still sending would otherwise get a connection
 * reset instead of the response. What still arrives is discarded; the request timeout of the server limits how long.
 */
function endWithRequest(request: IncomingMessage, response: ServerResponse, content: string | undefined): void {
  if (content === undefined) response.flushHeaders()
  else response.write(content)
  // If the rest of the body is malformed, Node destroys the connection before it would write the response.
  response.socket?.uncork()
  request.on('close', () => response.end()).resume()
}

/** Streams a body with backpressure. The header is sent with the first part, because reading that part may fail. */
async function streamBody(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  fields: string[],
  body: AsyncIterable<string>,
): Promise<SendResult> {
  let bytes = 0
  let resumeWriting = (): void => undefined
  // Use one listener for all parts. Middleware may attach listeners to a different stream, where `off` can't remove
  // them, so one per part would pile up.
  response.on('drain', () => resumeWriting())
  onResponseEvent(response, 'close', () => resumeWriting())
  try {
    for await (const part of body) {
      if (isClosed(response)) return { bytes, complete: false }
      if (bytes === 0) writeHead(response, status, fields)
      const drained = new Promise<void>((resolve) => (resumeWriting = resolve))
      const canWriteMore = response.write(part) as boolean | undefined
      bytes += Buffer.byteLength(part)
      // Middleware that wraps `write` may return undefined and never emit `drain`.
      if (canWriteMore === false) await drained
    }
    return { bytes, complete: await endResponse(request, response) }
  } catch (error) {
    return abortOrThrow(request, response, bytes, error)
  }
}

/** Ends a streamed response. Resolves to whether the client has got all of it. */
function endResponse(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  // Requests of serverless adapters don't have a socket.
  const { socket } = request as { readonly socket: Socket | null }
  if (isClosed(response)) return Promise.resolve(false)
  return new Promise((resolve) => {
    // The HTTP/2 compatibility API, and Node 20 and 22, emit `finish` even if the client has disconnected.
    onResponseEvent(response, 'finish', () => {
      resolve(streamOf(response)?.writableFinished ?? !(socket?.destroyed === true || Boolean(socket?.errored)))
    })
    onResponseEvent(response, 'close', () => resolve(false))
    response.end()
  })
}

/** Adds a listener to the response itself. Middleware might have replaced `on` to add listeners to another stream. */
function onResponseEvent(response: ServerResponse, event: 'close' | 'finish', listener: () => void): void {
  EventEmitter.prototype.on.call(response, event, listener)
}

/**
 * Aborts the response after an error from the body or from middleware, so that the client notices that it's incomplete.
 * @throws the error, if nothing has been sent yet
 */
function abortOrThrow(request: IncomingMessage, response: ServerResponse, bytes: number, error: unknown): SendResult {
  if (bytes === 0 && !response.headersSent) throw error
  if (response.writableEnded) return { bytes, complete: true, failure: { error } }
  const stream = streamOf(response)
  if (stream !== undefined) {
    // An HTTP/2 response looks complete if its stream ends without an error.
    stream.destroy(new Error('The response was aborted before it was complete'))
  } else {
    // A response to HTTP/1.0 ends when the connection closes (RFC 9112 section 6.3), so only a reset shows that data is
    // missing. In HTTP/1.1, the last chunk is missing, and a reset could lose earlier responses.
    if (request.httpVersion !== '1.1') response.socket?.resetAndDestroy()
    response.destroy()
  }
  return { bytes, complete: false, failure: { error } }
}
