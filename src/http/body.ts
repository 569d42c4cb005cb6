import type { IncomingMessage } from 'node:http'
import { HttpError } from './errors.ts'

/**
 * Reads the body of a request, once its header says that it may fit. Bytes are counted as they come; what the request
 * says of its length is not believed.
 * @returns undefined where the client went away before its body was complete
 * @throws HttpError 41300 as soon as there are more than `maxBytes` bytes
 */
export function readBody(
  request: IncomingMessage,
  contentLength: number,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    if (contentLength > maxBytes) return reject(bodyTooLarge(maxBytes))
    if (request.destroyed || request.readableEnded) {
      return resolve(request.complete ? readRest(request, maxBytes) : undefined)
    }

    const chunks: Buffer[] = []
    let length = 0

    function onData(chunk: Buffer): void {
      length += chunk.length
      if (length <= maxBytes) {
        chunks.push(chunk)
      } else {
        request.off('data', onData)
        chunks.length = 0
        reject(bodyTooLarge(maxBytes))
      }
    }
    request.on('data', onData)
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
    // Only ever that of a lost client. What comes after the first of these settles nothing any more.
    request.on('error', () => resolve(undefined))
    request.on('close', () => {
      // Node looks into every promise that is resolved twice, which takes as long as reading a small body.
      if (!request.readableEnded) resolve(undefined)
    })
    // A host may have paused it while it looked at the header.
    request.resume()
  })
}

/** Reads a body of which Node announces nothing more: an empty one, or one that was here before its client went. */
function readRest(request: IncomingMessage, maxBytes: number): Buffer {
  const chunks: Buffer[] = []
  for (let chunk; (chunk = request.read() as Buffer | null) !== null;) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  if (body.length > maxBytes) throw bodyTooLarge(maxBytes)
  return body
}

/**
 * Takes the body that a host's parser has read already.
 * @returns undefined where nothing of the request was read yet
 * @throws HttpError 41300; TypeError, which says what the host should do, where what the parser left is not exact
 */
export function takeParsedBody(request: IncomingMessage, maxBytes: number): Uint8Array | undefined {
  if (!request.readableDidRead && request.readableEncoding === null) return undefined

  const bytes = encodeParsed((request as { body?: unknown }).body)
  if (bytes === undefined) {
    throw new TypeError('The body was read before the service saw it: mount plant-store before the body parser')
  }
  if (bytes.length > maxBytes) throw bodyTooLarge(maxBytes)
  return bytes
}

function encodeParsed(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body
  if (typeof body === 'string') return Buffer.from(body)
  // A parser that went through doubles has rounded every id beyond 2^53.
  const isExact = typeof body === 'object' && body !== null && 'id' in body && Number.isSafeInteger(body.id)
  return isExact ? Buffer.from(JSON.stringify(body)) : undefined
}

function bodyTooLarge(maxBytes: number): HttpError {
  return new HttpError('bodyTooLarge', `The body is larger than ${maxBytes} bytes.`)
}
