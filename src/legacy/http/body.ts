import { AsyncResource } from 'node:async_hooks'
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { isUint8Array } from 'node:util/types'
import { readMember } from '../option-checks.ts'
import { clearTimeout, setTimeout } from '../timers.ts'
import { HTTP_ERRORS, HttpError } from './errors.ts'
import { headerValuesOf, rawHeadersOf } from './header-fields.ts'
import { isTruncated, streamOf } from './transport.ts'

const MAX_DISCARD_BYTES = 16 * 1024 * 1024
const MAX_DISCARD_MS = 2000
/** How long an HTTP/2 body may take to arrive, counted from the first read. Node has such a timeout only for HTTP/1. */
const HTTP2_BODY_TIMEOUT_MS = 30_000

/** What a host can do if its body parser reads the body first. */
export const BODY_PARSER_HINT = 'mount plant-store before the body parser, or keep the unparsed body in request.rawBody'

export const EMPTY_BODY: Buffer = Buffer.alloc(0)

const resolvedPromise = Promise.resolve()

/**
 * Reads a body, and calls `onBody` with the body or an error, in the caller's async context. Doesn't call `onBody` if
 * the client aborts the request. Counts the bytes as they arrive; the Content-Length is used only to reject an
 * oversized body early.
 */
export function readBody(
  request: IncomingMessage,
  contentLength: number,
  maxBytes: number,
  onBody: (body: Uint8Array | HttpError) => void,
): void {
  if (contentLength > maxBytes) return onBody(createBodyTooLargeError(maxBytes))
  if (isUnread(request)) {
    // Node parses the rest of the packet before it runs microtasks. If the body is complete by then, reading the buffer
    // is cheaper than handling events. A promise schedules the microtask, because fake timers replace
    // `process.nextTick` and `queueMicrotask`, but not promises.
    void resolvedPromise.then(() => readOrCollect(request.complete && request.readableFlowing === null))
  } else {
    readOrCollect(false)
  }

  /** @param isBuffered whether the whole body is in the request's buffer and nobody but the service reads it */
  function readOrCollect(isBuffered: boolean): void {
    const hasEnded = isBuffered || request.destroyed || request.readableEnded
    if (!hasEnded) return collectBody(request, maxBytes, onBody)
    if (isTruncated(request)) return
    const body = readBuffer(request)
    onBody(body.length > maxBytes ? createBodyTooLargeError(maxBytes) : body)
  }
}

/**
 * Whether this is an incomplete HTTP/1 request that Node itself created, and nobody is reading its body or listening
 * for `resume`.
 */
function isUnread(request: IncomingMessage): boolean {
  const { complete } = request as { complete?: boolean }
  const isNodeRequest = complete === false && streamOf(request) === undefined
  return isNodeRequest && request.readableFlowing === null && request.listenerCount('resume') === 0
}

function collectBody(request: IncomingMessage, maxBytes: number, onBody: (body: Uint8Array | HttpError) => void): void {
  // Node emits the events in the async context of the connection, not in that of the request.
  const context = new AsyncResource('plant-store')
  let body: Buffer = EMPTY_BODY
  let length = 0
  let timer: NodeJS.Timeout | undefined

  function onData(data: Buffer | string): void {
    // A request that a test creates from strings emits strings.
    const chunk = typeof data === 'string' ? Buffer.from(data) : data
    const offset = length
    length += chunk.length
    if (length > maxBytes) return reject(createBodyTooLargeError(maxBytes))
    // The first chunk is usually the only one. Copy it only if it's a view of a larger buffer, which the chunk would
    // keep in memory.
    if (offset === 0 && chunk.buffer.byteLength <= maxBytes) {
      body = chunk
      return
    }
    if (length > body.length) {
      // Copy the chunks instead of keeping them: a chunk of one byte takes hundreds of bytes of memory.
      const newBody = Buffer.allocUnsafeSlow(Math.min(2 * length, maxBytes))
      newBody.set(body)
      body = newBody
    }
    body.set(chunk, offset)
  }
  function onEnd(): void {
    // Faster than letting Node remove the listener.
    request.off('data', onData)
    clearTimeout(timer)
    if (isTruncated(request)) return
    context.runInAsyncScope(onBody, undefined, body.length === length ? body : body.subarray(0, length))
  }
  function reject(error: HttpError): void {
    request.off('data', onData).off('end', onEnd)
    clearTimeout(timer)
    body = EMPTY_BODY
    context.runInAsyncScope(onBody, undefined, error)
  }
  request.on('data', onData).on('end', onEnd)
  // Node emits `end` even for a stream that was reset, so the timer never outlives the stream.
  if (streamOf(request) !== undefined) {
    timer = setTimeout(reject, HTTP2_BODY_TIMEOUT_MS, HTTP_ERRORS.requestTimeout)
  }
  // A request that the host created may emit `error` when the client disconnects. Without a listener, that would crash
  // the process.
  request.on('error', () => undefined)
  // The host might have paused the request before it called the service.
  request.resume()
}

/** Reads the request's buffer: the whole body, or all that Node received before the client disconnected. */
function readBuffer(request: IncomingMessage): Buffer {
  const firstChunk = (request.read() as Buffer | null) ?? EMPTY_BODY
  const otherChunks: Buffer[] = []
  for (let chunk; (chunk = request.read() as Buffer | null) !== null;) otherChunks.push(chunk)
  return otherChunks.length === 0 ? firstChunk : Buffer.concat([firstChunk, ...otherChunks])
}

/**
 * Returns the body if one of the host's parsers has read it, or undefined if nothing has been read yet.
 * @param onParsedObject called if all that is left of the body is a parsed object
 * @throws HttpError 41300 if the body is too large; TypeError if the parser lost the exact body
 */
export function readParsedBody(
  request: IncomingMessage,
  maxBytes: number,
  onParsedObject: () => void,
): Uint8Array | undefined {
  if (!request.readableDidRead && request.readableEncoding === null) return undefined

  const parsed = request as { rawBody?: unknown; body?: unknown }
  const rawBody = readMember(parsed, 'rawBody')
  const body = readMember(parsed, 'body')
  let bytes = toBytes(rawBody) ?? toBytes(body)
  if (bytes === undefined && typeof body === 'object' && body !== null) {
    onParsedObject()
    bytes = encodeObject(body as ParsedObject)
  }
  if (bytes === undefined) throw new TypeError(`The body was already read: ${BODY_PARSER_HINT}`)
  if (bytes.length > maxBytes) throw createBodyTooLargeError(maxBytes)
  return bytes
}

function toBytes(body: unknown): Uint8Array | undefined {
  // `instanceof` fails for arrays from another realm, such as Jest's jsdom environment.
  if (isUint8Array(body)) return body
  return typeof body === 'string' ? Buffer.from(body) : undefined
}

type ParsedObject = Readonly<Record<'id' | 'name' | 'tag', unknown>>

/**
 * Encodes the id, name and tag of a parsed object as JSON. Returns undefined unless the id is a safe integer or a
 * bigint, because a double beyond 2^53 might have been rounded.
 */
function encodeObject(body: ParsedObject): Uint8Array | undefined {
  const id = readMember(body, 'id')
  const isExact = Number.isSafeInteger(id) || typeof id === 'bigint'
  return isExact ? Buffer.from(`{"id":${String(id)}${encodeText(body, 'name')}${encodeText(body, 'tag')}}`) : undefined
}

/** A value other than a string or null is encoded as 0, because it's invalid anyway. */
function encodeText(body: ParsedObject, name: 'name' | 'tag'): string {
  const value = readMember(body, name)
  if (value === undefined) return ''
  return `,"${name}":${typeof value === 'string' || value === null ? JSON.stringify(value) : 0}`
}

/** Whether the request has a body that hasn't completely arrived yet. */
export function isBodyPending(request: IncomingMessage): boolean {
  const { complete } = request as { complete?: boolean }
  // A request that a test or a serverless adapter creates either lacks `complete` or never updates it.
  if (complete !== false || request.readableEnded) return false
  const stream = streamOf(request)
  if (stream !== undefined) return !stream.endAfterHeaders
  const rawHeaders = rawHeadersOf(request)
  if (headerValuesOf(rawHeaders, 'transfer-encoding').length > 0) return true
  return Number(headerValuesOf(rawHeaders, 'content-length')[0] ?? 0) > request.readableLength
}

/** Discards the rest of a body. Calls `done` when the body ends, the client disconnects, or 2 s have passed. */
export function discardBody(request: IncomingMessage, done: () => void): void {
  const stream = streamOf(request)
  let length = 0
  const timer = setTimeout(finish, MAX_DISCARD_MS)

  function onData(chunk: Buffer | string): void {
    length += chunk.length
    if (length <= MAX_DISCARD_BYTES) return
    if (stream?.writableFinished === true) return finish()
    // Closing the connection or stream now would reset it before the client can read the response.
    request.pause()
  }
  function finish(): void {
    clearTimeout(timer)
    request.off('data', onData).off('end', finish).off('close', finish)
    done()
  }
  request.on('data', onData).on('end', finish).on('close', finish).resume()
}

const createBodyTooLargeError = (maxBytes: number): HttpError =>
  new HttpError('bodyTooLarge', `The body is larger than ${maxBytes} bytes.`)
