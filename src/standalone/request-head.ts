import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/**
 * What is known of a request. Of one that could not be read, these are the fields on which every response depends:
 * `origin` and `x-request-id`.
 */
export type RequestHead = Pick<IncomingMessage, 'headers' | 'method' | 'url'>

const FIELD = /^(origin|x-request-id):[ \t]*([^\r\n]*?)[ \t]*\r?$/gim

/** Reads a head that is not whole, or malformed. */
export function readBrokenHead(head: Buffer): RequestHead {
  const headers: IncomingHttpHeaders = {}
  for (const [, name, value] of head.toString('latin1').matchAll(FIELD)) {
    const key = name!.toLowerCase()
    headers[key] = key in headers ? `${String(headers[key])}, ${value}` : value
  }
  return { headers }
}
