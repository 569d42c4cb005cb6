import type { IncomingMessage } from 'node:http'
import { HttpError } from './errors.ts'
import { JsonObject } from './json.ts'

/**
 * Reads the body of a request, once its header says that it may fit. Bytes are counted as they come; what the request says of its length is not believed.
 * @returns undefined where the client went away before its body was complete
 * @throws HttpError 41300 as soon as there are more than `maxBytes` bytes
 */
export function readBody(
  request: IncomingMessage,
  contentLength: number,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    function refuse(): void {
      reject(new HttpError('bodyTooLarge', `The body is larger than ${maxBytes} bytes.`))
    }
    if (contentLength > maxBytes) return refuse()

    const chunks: Buffer[] = []
    let length = 0

    function onData(chunk: Buffer): void {
      length += chunk.length
      if (length <= maxBytes) {
        chunks.push(chunk)
      } else {
        request.off('data', onData)
        refuse()
      }
    }
    request.on('data', onData)
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, length)))
    // Whatever comes after the first of these settles nothing any more. An error is only ever that of a lost client.
    request.on('error', () => resolve(undefined))
    request.once('close', () => resolve(undefined))
  })
}

/**
 * Takes the body that a host's parser has read already.
 * @returns undefined where nothing of the request was read yet
 * @throws HttpError 41300; TypeError, which says what the host should do, where what the parser left is not exact
 */
export function takeParsedBody(request: IncomingMessage, maxBytes: number): Uint8Array | JsonObject | undefined {
  if (!request.readableDidRead && request.readableEncoding === null) return undefined

  const { body } = request as { body?: unknown }
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (bytes.length > maxBytes) throw new HttpError('bodyTooLarge', `The body is larger than ${maxBytes} bytes.`)
    return bytes
  }
  // A parser that went through doubles has rounded every id beyond 2^53.
  if (typeof body === 'object' && body !== null && 'id' in body && Number.isSafeInteger(body.id)) {
    const members = Object.entries({ ...body, id: BigInt(body.id as number) })
    return new JsonObject(members.map(([name, value]) => ({ name, value })))
  }
  throw new TypeError('The body was read before the service saw it: mount plant-store before the body parser')
}
