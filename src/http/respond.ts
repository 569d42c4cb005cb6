import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { setImmediate } from 'node:timers/promises'
import { encodeUtf8 } from '../plants/text.ts'
import type { HttpError } from './errors.ts'
import { reset } from './reset.ts'

/** What a request is answered. */
export interface HttpResponse {
  readonly status: number
  /** Name, value, name, value… */
  readonly headers: readonly string[]
  /**
   * JSON text in UTF-8, one character for each byte, whole or piece by piece; undefined where the answer has no body.
   */
  readonly body: string | AsyncIterable<string> | undefined
}

/** How much of a refused body is read and thrown away, so that the client sees the answer before a reset. */
const DISCARD_MAX_BYTES = 16 * 1024 * 1024
const DISCARD_MAX_MS = 2000

/** An answer whose body is the JSON text of a value. */
export function jsonResponse(
  status: number,
  headers: readonly string[],
  value: object,
): HttpResponse & { readonly body: string } {
  return { status, headers, body: encodeUtf8(JSON.stringify(value)) }
}

/** What an error of the service is answered. */
export function errorResponse({
  status,
  headers,
  error,
  message,
}: HttpError): HttpResponse & { readonly body: string } {
  return jsonResponse(status, headers, { error, message })
}

/**
 * Sends an answer. Does nothing where the host has answered already or the client has gone.
 * @returns the bytes of the body that were sent, once all are handed over or the client has gone
 */
export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  answer: HttpResponse,
): number | Promise<number> {
  if (answer.status < 400 || !isBodyAwaited(request)) return send(request, response, answer)
  // Node announces a request before it has parsed the body that came in the same packet. Such a body is not awaited.
  return setImmediate().then(() => send(request, response, answer))
}

function send(request: IncomingMessage, response: ServerResponse, answer: HttpResponse): number | Promise<number> {
  if (response.headersSent || isClosed(response)) return 0
  // A stream that its client resets without an error is kept by some versions of Node, with all that it has to send.
  const stream = streamOf(response)
  stream?.once('aborted', () => stream.destroy())
  if (stream === undefined && isEndUncertain(request)) response.setHeader('Connection', 'close')
  const { status, body } = answer
  const isHead = request.method === 'HEAD'

  if (typeof body === 'object') {
    response.writeHead(status, [...answer.headers, 'Content-Type', 'application/json'])
    if (!isHead) return writeAll(request, response, body)
    response.end()
    return 0
  }

  const headers =
    body === undefined
      ? [...answer.headers]
      : [...answer.headers, 'Content-Type', 'application/json', 'Content-Length', String(body.length)]
  const content = isHead ? undefined : body
  if (status >= 400 && isBodyAwaited(request)) {
    // HTTP/2 has no such field: its streams end one by one (RFC 9113 section 8.2.2).
    if (stream === undefined) headers.push('Connection', 'close')
    response.writeHead(status, headers)
    // The answer is out now; its end, after which the connection closes, waits for the client.
    if (content === undefined) response.flushHeaders()
    else response.write(content, 'latin1')
    discardBody(request, () => endEarly(request, response))
  } else {
    response.writeHead(status, headers)
    // HTTP/2 sends head and body apart anyway, and its compatibility API cannot hold anything back.
    if (content === undefined || stream !== undefined) response.end(content, 'latin1')
    else endInOnePiece(response, content)
  }
  return content?.length ?? 0
}

/**
 * Hands the socket head and body as one piece. `end(body)` adds an empty one, and for two pieces Node 20 takes a way that
 * is slower by a tenth of what the whole request costs; Node 24 is as fast with either.
 */
function endInOnePiece(response: ServerResponse, body: string): void {
  response.cork()
  response.write(body, 'latin1')
  response.uncork()
  response.end()
}

/** Writes a body piece by piece, as fast as the client reads. */
async function writeAll(
  request: IncomingMessage,
  response: ServerResponse,
  body: AsyncIterable<string>,
): Promise<number> {
  let length = 0
  try {
    for await (const piece of body) {
      if (isClosed(response)) return length
      length += piece.length
      if (!response.write(piece, 'latin1')) await drained(response)
    }
    response.end()
  } finally {
    if (!response.writableEnded) cutOff(request, response)
  }
  return length
}

/** Settles when the client has read on, or gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    function settle(): void {
      response.off('drain', settle).off('close', settle)
      resolve()
    }
    response.on('drain', settle).on('close', settle)
  })
}

/** Whether the request has a body that has not arrived in full. */
function isBodyAwaited(request: IncomingMessage): boolean {
  if (request.complete) return false
  const stream = streamOf(request)
  if (stream !== undefined) return !stream.endAfterHeaders
  const { headers } = request
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Whether Node and a proxy in front of it may differ about where the request ends, or the next one begins. */
function isEndUncertain({ rawHeaders, httpVersionMinor }: IncomingMessage): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    // Node drops what came in the same read behind a request that asks for another protocol.
    if (name.length === 7 && name.toLowerCase() === 'upgrade') return true
    // HTTP/1.0 has no transfer codings (RFC 9112 section 6.1).
    if (httpVersionMinor === 0 && name.length === 17 && name.toLowerCase() === 'transfer-encoding') return true
  }
  return false
}

/** Throws away what arrives of a body, until it ends, the client goes, or it has been enough. */
function discardBody(request: IncomingMessage, done: () => void): void {
  let length = 0
  const timer = setTimeout(stop, DISCARD_MAX_MS)

  function onData(chunk: Buffer | string): void {
    length += chunk.length
    if (length > DISCARD_MAX_BYTES) stop()
  }
  function stop(): void {
    clearTimeout(timer)
    request.off('data', onData).off('end', stop).off('close', stop)
    done()
  }
  request.on('data', onData).on('end', stop).on('close', stop).resume()
}

/** Ends an answer that went out before the body was read. */
function endEarly(request: IncomingMessage, response: ServerResponse): void {
  response.end()
  // Else the client may send for ever: nothing but a reset ends its side of a stream (RFC 9113 section 8.1).
  if (!request.complete) streamOf(response)?.close()
}

/** Ends an answer in the middle, so that the client does not take it for a whole one. */
function cutOff(request: IncomingMessage, response: ServerResponse): void {
  // A stream that ends without an error looks whole.
  const stream = streamOf(response)
  if (stream !== undefined) return void stream.destroy(new Error('The answer could not be sent to its end'))
  // So does an answer of HTTP/1.0: it ends where its connection does (RFC 9112 section 6.3). One of HTTP/1.1 has a last
  // chunk, and its connection may hold whole answers before it that a reset would take from the client. Node answers
  // what calls itself HTTP/0.9 or HTTP/2.0 there as HTTP/1.0.
  if (request.httpVersion !== '1.1' && response.socket !== null) reset(response.socket)
  response.destroy()
}

/** Whether nothing more can be written: the host has ended the answer, or the client has gone. */
function isClosed(response: ServerResponse): boolean {
  return response.writableEnded || (streamOf(response)?.closed ?? response.destroyed)
}

/** The stream under a message of HTTP/2; the compatibility API lacks what only that can do or tell. */
function streamOf(message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined {
  return (message as { stream?: ServerHttp2Stream }).stream
}
