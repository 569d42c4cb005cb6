import { AsyncResource } from 'node:async_hooks'
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { isUint8Array } from 'node:util/types'
import { readMember } from '../option-checks.ts'
import { clearTimeout, setTimeout } from '../timers.ts'
import { HTTP_ERRORS, HttpError } from './errors.ts'
import { headerValuesOf, rawHeadersOf } from './header-fields.ts'
import { MAX_DEPTH } from './json.ts'
import { isTruncated, streamOf } from './transport.ts'

const MAX_DISCARD_BYTES = 16 * 1024 * 1024
const MAX_DISCARD_MS = 2000
/** How long an HTTP/2 body can take to arrive, counted from the first read. Node has such a timeout for HTTP/1 only. */
const HTTP2_BODY_TIMEOUT_MS = 30_000

export const EMPTY_BODY: Buffer = Buffer.alloc(0)

const resolvedPromise = Promise.resolve()

/** Counts bytes as they come; believes a Content-Length only if it is too much. Goes on in its own async context. */
export function readBody(
  request: IncomingMessage,
  contentLength: number,
  maxBytes: number,
  onBody: (body: Uint8Array | HttpError) => void,
): void {
  if (contentLength > maxBytes) return onBody(createBodyTooLargeError(maxBytes))
  if (!isUnread(request)) return readNowOrCollect(false)
  // Node parses the rest of a packet before it runs microtasks. Reading what is buffered by then is cheaper than events.
  // A promise isn't replaced by fake timers, unlike `process.nextTick` and `queueMicrotask`.
  void resolvedPromise.then(() => readNowOrCollect(request.complete && request.readableFlowing === null))

  /** @param isBuffered whether all of it has arrived, and nobody else reads it */
  function readNowOrCollect(isBuffered: boolean): void {
    if (!isBuffered && !request.destroyed && !request.readableEnded) return collectBody(request, maxBytes, onBody)
    if (isTruncated(request)) return
    const body = readBufferedBody(request)
    onBody(body.length > maxBytes ? createBodyTooLargeError(maxBytes) : body)
  }
}

/** Whether this is a request of HTTP/1, of Node itself, that nobody else reads or waits to be read. */
function isUnread(request: IncomingMessage): boolean {
  const { complete } = request as { complete?: boolean }
  const isNodeRequest = complete === false && streamOf(request) === undefined
  return isNodeRequest && request.readableFlowing === null && request.listenerCount('resume') === 0
}

function collectBody(request: IncomingMessage, maxBytes: number, onBody: (body: Uint8Array | HttpError) => void): void {
  // The events come in the context of whatever else the connection does.
  const context = new AsyncResource('plant-store')
  let body: Buffer = EMPTY_BODY
  let length = 0
  let timer: NodeJS.Timeout | undefined

  function onData(data: Buffer | string): void {
    // A request that a test builds from strings emits them as they are.
    const chunk = typeof data === 'string' ? Buffer.from(data) : data
    const offset = length
    length += chunk.length
    if (length > maxBytes) return reject(createBodyTooLargeError(maxBytes))
    // The first chunk, mostly the only one, is not copied, unless it would keep a larger piece of memory alive.
    if (offset === 0 && chunk.buffer.byteLength <= maxBytes) {
      body = chunk
      return
    }
    if (length > body.length) {
      // The chunks are not kept: one of a single byte costs hundreds.
      const newBody = Buffer.allocUnsafeSlow(Math.min(2 * length, maxBytes))
      newBody.set(body)
      body = newBody
    }
    body.set(chunk, offset)
  }
  function onEnd(): void {
    // Node would, by a slower way.
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
  // Node emits `end` for streams that were reset too, so no timer outlives its stream.
  if (streamOf(request) !== undefined) {
    timer = setTimeout(reject, HTTP2_BODY_TIMEOUT_MS, HTTP_ERRORS.requestTimeout)
  }
  // Otherwise a lost client would end the process, if the request is one that a host has made up.
  request.on('error', () => undefined)
  // A host may have paused it while it looked at the header.
  request.resume()
}

/** Reads a body that is there: in full, or all that Node will emit for a client that has gone. */
function readBufferedBody(request: IncomingMessage): Buffer {
  const firstChunk = (request.read() as Buffer | null) ?? EMPTY_BODY
  const otherChunks: Buffer[] = []
  for (let chunk; (chunk = request.read() as Buffer | null) !== null;) otherChunks.push(chunk)
  return otherChunks.length === 0 ? firstChunk : Buffer.concat([firstChunk, ...otherChunks])
}

/**
 * Undefined if nothing was read yet.
 * @param onParsedObject called if a parser left an object only
 * @throws HttpError 41300; TypeError if what a host's parser left is not exact
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
    bytes = encodeObject(body, maxBytes)
  }
  if (bytes === undefined) {
    throw new TypeError('The body was read before the service saw it: mount plant-store before the body parser')
  }
  if (bytes.length > maxBytes) throw createBodyTooLargeError(maxBytes)
  return bytes
}

function toBytes(body: unknown): Uint8Array | undefined {
  // `instanceof` fails for bytes of another realm, such as the one that Jest runs tests for browsers in.
  if (isUint8Array(body)) return body
  return typeof body === 'string' ? Buffer.from(body) : undefined
}

/** Encodes a parsed object as JSON. Undefined if its id is a double that may be rounded, as doubles beyond 2^53 are. */
function encodeObject(body: object, maxBytes: number): Uint8Array | undefined {
  // The copy asks each getter once, so what is checked is what is taken.
  const members = { ...(body as { readonly id?: unknown }) }
  const isExact = Number.isSafeInteger(members.id) || typeof members.id === 'bigint'
  return isExact ? Buffer.from(writeJson(members, maxBytes)) : undefined
}

/** Writes JSON text, and stops once it is longer or deeper than a body may be. JSON.stringify would ask `toJSON`. */
function writeJson(root: object, maxBytes: number): string {
  let text = ''
  let isLimitExceeded = false

  function writeValue(value: unknown, depth: number): void {
    if (typeof value === 'string') text += JSON.stringify(value)
    else if (typeof value === 'number' && !Number.isFinite(value)) text += 'null'
    else if (typeof value !== 'object' || value === null) text += String(value)
    else writeMembers(value, depth)
  }
  function writeMembers(value: object, depth: number): void {
    const isArray = Array.isArray(value)
    text += isArray ? '[' : '{'
    let separator = ''
    for (const key of isArray ? value.keys() : Object.keys(value)) {
      isLimitExceeded ||= depth > MAX_DEPTH || text.length > maxBytes
      if (isLimitExceeded) return
      const member = (value as Record<string, unknown>)[key]
      // JSON.stringify omits these too. Numbers of decimal.js, for example, have a function as a member.
      if (member === undefined || typeof member === 'function' || typeof member === 'symbol') continue
      text += isArray ? separator : separator + JSON.stringify(key) + ':'
      separator = ','
      writeValue(member, depth + 1)
    }
    if (!isLimitExceeded) text += isArray ? ']' : '}'
  }
  writeValue(root, 1)
  return text
}

/** Whether the request has a body that has not arrived in full. */
export function isBodyPending(request: IncomingMessage): boolean {
  const { complete } = request as { complete?: boolean }
  // A request that a test or a serverless adapter creates either lacks this member or never updates it.
  if (complete !== false || request.readableEnded) return false
  const stream = streamOf(request)
  if (stream !== undefined) return !stream.endAfterHeaders
  const rawHeaders = rawHeadersOf(request)
  if (headerValuesOf(rawHeaders, 'transfer-encoding').length > 0) return true
  return Number(headerValuesOf(rawHeaders, 'content-length')[0] ?? 0) > request.readableLength
}

export function discardBody(request: IncomingMessage, done: () => void): void {
  const stream = streamOf(request)
  let length = 0
  const timer = setTimeout(finish, MAX_DISCARD_MS)

  function onData(chunk: Buffer | string): void {
    length += chunk.length
    if (length <= MAX_DISCARD_BYTES) return
    if (stream?.writableFinished === true) return finish()
    // Closed now, the connection or the stream would be reset before a fast client has read its response.
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
