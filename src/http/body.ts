import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { isUint8Array } from 'node:util/types'
import type { MaybePromise } from '../plants/store.ts'
import { HttpError } from './errors.ts'
import { hasBody, headerValues } from './header-fields.ts'
import type { JsonValue } from './json.ts'

/** A request as the host received it: from HTTP/1, or from the compatibility API of HTTP/2. */
export type HostRequest = IncomingMessage | Http2ServerRequest

/** What a host can do if its body parser reads the body first. */
export const BODY_PARSER_HINT = 'mount plant-store before the body parser, or keep the unparsed body in request.rawBody'

/** An object that one of the host's parsers has made of a body. */
export type ParsedBody = Readonly<Record<string, JsonValue | undefined>>

export interface BodyOptions {
  readonly maxBodyBytes: number
  /** Called for each request of whose body a parser of the host has left only an object. */
  readonly onParsedObject: () => void
}

/**
 * Reads the body, or returns what one of the host's parsers has made of it. Counts the bytes as they arrive; the
 * Content-Length is used only to reject an oversized body early. What still arrives of a rejected body is discarded.
 * @returns undefined if the client aborts the request
 * @throws HttpError 41300 if the body is too large; TypeError if the parser lost the exact body
 */
export function readBody(
  request: IncomingMessage,
  options: BodyOptions,
): MaybePromise<Buffer | ParsedBody | undefined> {
  if (isTruncated(request)) return undefined
  if (request.readableDidRead || request.readableEncoding !== null) return readParsedBody(request, options)
  const { maxBodyBytes } = options
  const contentLength = Number(headerValues(request, 'content-length')[0] ?? 0)
  if (contentLength > maxBodyBytes) throw createTooLargeError(maxBodyBytes)
  const isUnread = request.readableFlowing === null && streamOf(request) === undefined
  const isBuffered = request.complete || (contentLength > 0 && request.readableLength === contentLength)
  const hasEnded = request.readableEnded || request.destroyed
  if (!hasEnded && !(isBuffered && isUnread)) return collectBody(request, maxBodyBytes)
  const body = readBuffered(request)
  request.resume()
  if (body.length > maxBodyBytes) throw createTooLargeError(maxBodyBytes)
  return body
}

/** Reads everything that has arrived. From Node 26 on, one call of `read` returns only one chunk. */
function readBuffered(request: IncomingMessage): Buffer {
  const chunks: Buffer[] = []
  for (let chunk; (chunk = request.read() as Buffer | null) !== null;) chunks.push(chunk)
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

const createTooLargeError = (maxBodyBytes: number): HttpError =>
  new HttpError('bodyTooLarge', `The body is larger than ${maxBodyBytes} bytes.`)

function readParsedBody(request: IncomingMessage, { maxBodyBytes, onParsedObject }: BodyOptions): Buffer | ParsedBody {
  const { rawBody, body } = request as { rawBody?: unknown; body?: unknown }
  const bytes = toBuffer(rawBody) ?? toBuffer(body)
  if (bytes !== undefined && bytes.length > maxBodyBytes) throw createTooLargeError(maxBodyBytes)
  if (bytes !== undefined) return bytes
  if (typeof body === 'object' && body !== null) onParsedObject()
  const { id, ...others } = (body ?? {}) as ParsedBody
  // A double beyond 2^53 might have been rounded.
  if (typeof id === 'bigint' || Number.isSafeInteger(id)) return { id: BigInt(id as bigint | number), ...others }
  throw new TypeError(`The body was already read: ${BODY_PARSER_HINT}`)
}

function toBuffer(body: unknown): Buffer | undefined {
  if (typeof body === 'string') return Buffer.from(body)
  return isUint8Array(body) ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : undefined
}

async function collectBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  let body = Buffer.alloc(0)
  let length = 0
  const isComplete = await receiveBody(request, (data, reject) => {
    // A request that a test creates from strings emits strings.
    const chunk = Buffer.from(data)
    const start = length
    length += chunk.length
    if (length > maxBytes) {
      body = Buffer.alloc(0)
      return reject(createTooLargeError(maxBytes))
    }
    // Copying the chunks takes less memory than keeping them: a chunk of one byte takes hundreds of bytes.
    if (length > body.length) body = Buffer.concat([body], Math.min(2 * length, maxBytes))
    chunk.copy(body, start)
  })
  return isComplete ? body.subarray(0, length) : undefined
}

/** Waits for the end of a body that isn't needed. The result is false if the client aborts the request. */
export function discardBody(request: IncomingMessage): boolean | Promise<boolean> {
  if (isTruncated(request)) return false
  const stream = streamOf(request)
  const { complete } = request as Partial<IncomingMessage>
  const isPending = stream === undefined ? complete === false && hasBody(request) : !stream.endAfterHeaders
  return isPending && !request.readableEnded ? receiveBody(request, () => undefined) : true
}

/** Reads a body to its end, unless `onData` rejects it. Resolves to false if the client aborts the request. */
function receiveBody(
  request: IncomingMessage,
  onData: (chunk: Buffer | string, reject: (error: HttpError) => void) => void,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    request
      .on('data', (chunk: Buffer | string) => onData(chunk, reject))
      .on('end', () => resolve(!isTruncated(request)))
      .on('close', () => resolve(false))
      // If an adapter uses a stream of its own as the request, an error without a listener would crash the process.
      .on('error', () => resolve(false))
      // The host might have paused the request before it called the service.
      .resume()
  })
}

/** Returns the HTTP/2 stream of a message, which has more methods and state than the compatibility API. */
export const streamOf = (message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined =>
  (message as { stream?: ServerHttp2Stream }).stream

/** Whether the body is incomplete and will remain so: the connection is closed, or one side reset the HTTP/2 stream. */
export function isTruncated(request: IncomingMessage): boolean {
  const { complete, destroyed, readableEnded, socket } = request as Partial<IncomingMessage>
  const isUnread = readableEnded === false
  const stream = streamOf(request)
  // For a stream that was reset, Node emits `end` and reports the request as complete. If the packet that completes the
  // body also resets the stream, there's no way to tell that the body was complete.
  if (stream !== undefined) return (stream.closed || (destroyed === true && isUnread)) && !stream.endAfterHeaders
  return complete === false && isUnread && !isWritable(socket)
}

/** Whether a response can't be sent anymore: it has ended, or its connection or stream is closed. */
export function isClosed(response: ServerResponse): boolean {
  const stream = streamOf(response)
  if (response.writableEnded || stream !== undefined) return response.writableEnded || stream!.closed
  return response.destroyed || !isWritable(response.socket)
}

/** Node 20 and 22 don't destroy a socket immediately after a failed write. */
const isWritable = (socket: Duplex | null | undefined): boolean =>
  !(socket?.writableEnded === true || socket?.destroyed === true || Boolean(socket?.errored))
