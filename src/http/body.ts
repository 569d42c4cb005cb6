import { AsyncResource } from 'node:async_hooks'
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { isUint8Array } from 'node:util/types'
import { readMember } from '../option-checks.ts'
import { clearTimeout, setTimeout } from '../timers.ts'
import { HTTP_ERRORS, HttpError } from './errors.ts'
import { fieldsOf, rawHeadersOf } from './header-fields.ts'
import { MAX_DEPTH } from './json.ts'
import { isTruncated, streamOf } from './transport.ts'

const DISCARD_MAX_BYTES = 16 * 1024 * 1024
const DISCARD_MAX_MS = 2000
/** How long an HTTP/2 body can take to arrive, counted from the first read. Node has such a timeout for HTTP/1 only. */
const HTTP2_BODY_TIMEOUT_MS = 30_000

export const NOTHING: Buffer = Buffer.alloc(0)

const resolved = Promise.resolve()

/** Counts bytes as they come; believes a Content-Length only if it is too much. Goes on in its own async context. */
export function readBody(
  request: IncomingMessage,
  contentLength: number,
  maxBytes: number,
  goOn: (body: Uint8Array | HttpError) => void,
): void {
  if (contentLength > maxBytes) return goOn(bodyTooLarge(maxBytes))
  if (!isUntouched(request)) return read(false)
  // Node parses the rest of a packet before it runs microtasks. Reading what is buffered by then is cheaper than events.
  // A promise isn't replaced by fake timers, unlike `process.nextTick` and `queueMicrotask`.
  void resolved.then(() => read(request.complete && request.readableFlowing === null))

  /** @param isThere whether all of it has arrived, and nobody else reads it */
  function read(isThere: boolean): void {
    if (!isThere && !request.destroyed && !request.readableEnded) return collect(request, maxBytes, goOn)
    if (isTruncated(request)) return
    const rest = readRest(request)
    goOn(rest.length > maxBytes ? bodyTooLarge(maxBytes) : rest)
  }
}

/** Whether this is a request of HTTP/1, of Node itself, that nobody else reads or waits to be read. */
function isUntouched(request: IncomingMessage): boolean {
  const { complete } = request as { complete?: boolean }
  const isNodes = complete === false && streamOf(request) === undefined
  return isNodes && request.readableFlowing === null && request.listenerCount('resume') === 0
}

function collect(request: IncomingMessage, maxBytes: number, goOn: (body: Uint8Array | HttpError) => void): void {
  // The events come in the context of whatever else the connection does.
  const context = new AsyncResource('plant-store')
  let body: Buffer = NOTHING
  let length = 0
  let timer: NodeJS.Timeout | undefined

  function onData(piece: Buffer | string): void {
    // A request that a test builds from strings emits them as they are.
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece
    const start = length
    length += chunk.length
    if (length > maxBytes) return reject(bodyTooLarge(maxBytes))
    // The first chunk, mostly the only one, is not copied, unless it would keep a larger piece of memory alive.
    if (start === 0 && chunk.buffer.byteLength <= maxBytes) {
      body = chunk
      return
    }
    if (length > body.length) {
      // The chunks are not kept: one of a single byte costs hundreds.
      const larger = Buffer.allocUnsafeSlow(Math.min(2 * length, maxBytes))
      larger.set(body)
      body = larger
    }
    body.set(chunk, start)
  }
  function onEnd(): void {
    // Node would, by a slower way.
    request.off('data', onData)
    clearTimeout(timer)
    if (isTruncated(request)) return
    context.runInAsyncScope(goOn, undefined, body.length === length ? body : body.subarray(0, length))
  }
  function reject(error: HttpError): void {
    request.off('data', onData).off('end', onEnd)
    clearTimeout(timer)
    body = NOTHING
    context.runInAsyncScope(goOn, undefined, error)
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
function readRest(request: IncomingMessage): Buffer {
  const first = (request.read() as Buffer | null) ?? NOTHING
  const others: Buffer[] = []
  for (let chunk; (chunk = request.read() as Buffer | null) !== null;) others.push(chunk)
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

/**
 * Undefined if nothing was read yet.
 * @param onObject called if a parser left an object only
 * @throws HttpError 41300; TypeError if what a host's parser left is not exact
 */
export function takeParsedBody(
  request: IncomingMessage,
  maxBytes: number,
  onObject: () => void,
): Uint8Array | undefined {
  if (!request.readableDidRead && request.readableEncoding === null) return undefined

  const parsed = request as { rawBody?: unknown; body?: unknown }
  const rawBody = readMember(parsed, 'rawBody')
  const body = readMember(parsed, 'body')
  let bytes = encodeExact(rawBody) ?? encodeExact(body)
  if (bytes === undefined && typeof body === 'object' && body !== null) {
    onObject()
    bytes = encodeObject(body, maxBytes)
  }
  if (bytes === undefined) {
    throw new TypeError('The body was read before the service saw it: mount plant-store before the body parser')
  }
  if (bytes.length > maxBytes) throw bodyTooLarge(maxBytes)
  return bytes
}

function encodeExact(body: unknown): Uint8Array | undefined {
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
  let isOver = false

  function write(value: unknown, depth: number): void {
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
      isOver ||= depth > MAX_DEPTH || text.length > maxBytes
      if (isOver) return
      const member = (value as Record<string, unknown>)[key]
      // JSON.stringify omits these too. Numbers of decimal.js, for example, have a function as a member.
      if (member === undefined || typeof member === 'function' || typeof member === 'symbol') continue
      text += isArray ? separator : separator + JSON.stringify(key) + ':'
      separator = ','
      write(member, depth + 1)
    }
    if (!isOver) text += isArray ? ']' : '}'
  }
  write(root, 1)
  return text
}

/** Whether the request has a body that has not arrived in full. */
export function isBodyAwaited(request: IncomingMessage): boolean {
  const { complete } = request as { complete?: boolean }
  // A request that a test or a serverless adapter creates either lacks this member or never updates it.
  if (complete !== false || request.readableEnded) return false
  const stream = streamOf(request)
  if (stream !== undefined) return !stream.endAfterHeaders
  const rawHeaders = rawHeadersOf(request)
  if (fieldsOf(rawHeaders, 'transfer-encoding').length > 0) return true
  return Number(fieldsOf(rawHeaders, 'content-length')[0] ?? 0) > request.readableLength
}

export function discardBody(request: IncomingMessage, done: () => void): void {
  const stream = streamOf(request)
  let length = 0
  const timer = setTimeout(stop, DISCARD_MAX_MS)

  function onData(chunk: Buffer | string): void {
    length += chunk.length
    if (length <= DISCARD_MAX_BYTES) return
    if (stream?.writableFinished === true) return stop()
    // Closed now, the connection or the stream would be reset before a fast client has read its response.
    request.pause()
  }
  function stop(): void {
    clearTimeout(timer)
    request.off('data', onData).off('end', stop).off('close', stop)
    done()
  }
  request.on('data', onData).on('end', stop).on('close', stop).resume()
}

const bodyTooLarge = (maxBytes: number): HttpError =>
  new HttpError('bodyTooLarge', `The body is larger than ${maxBytes} bytes.`)
