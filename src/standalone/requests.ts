import { randomBytes } from 'node:crypto'
import type { RequestHead } from './http-server.ts'
import { headerValuesOf } from '../http/header-fields.ts'
import { createRouter, type Resource } from '../http/router.ts'

/** Matches 1 to 128 visible ASCII characters. */
const VALID_ID = /^[\x21-\x7e]{1,128}$/
const ID_PREFIX = `${randomBytes(8).toString('hex')}-`
let generatedCount = 0
const REQUEST_ID: unique symbol = Symbol('id')

/**
 * Returns a request's ID, which is included in the response and in the log lines. Uses the ID that the client sent if
 * it's valid, and otherwise generates one.
 */
export function getRequestId(request: Pick<RequestHead, 'rawHeaders'> & { [REQUEST_ID]?: string | undefined }): string {
  return (request[REQUEST_ID] ??= readRequestId(request) ?? `${ID_PREFIX}${++generatedCount}`)
}

function readRequestId({ rawHeaders = [] }: Pick<RequestHead, 'rawHeaders'>): string | undefined {
  const values = headerValuesOf(rawHeaders, 'x-request-id')
  return values.length === 1 && VALID_ID.test(values[0]!) ? values[0] : undefined
}

export type FindResource = (request: RequestHead) => Resource<string> | undefined

/** The path of `OPTIONS *`, which refers to the whole server. */
export const ASTERISK_PATH = '*'

/** `*`, or its absolute form, which clients send to a proxy (RFC 9112 section 3.2.4). */
const ASTERISK_TARGET = /^(?:\*|https?:\/\/[^/?]+)$/i

/**
 * Creates the router of the standalone server. Routing, CORS and metrics each look up the resource of a request,
 * usually back to back, so the last result is cached.
 */
export function createProgramRouter(paths: readonly string[]): FindResource {
  const route = createRouter('', paths)
  let lastUrl: string | undefined
  let lastResource: Resource<string> | undefined
  return ({ method, url }) => {
    if (method === 'OPTIONS' && ASTERISK_TARGET.test(url!)) return { path: ASTERISK_PATH, id: '', query: '' }
    if (url !== lastUrl) lastResource = route(url!)
    lastUrl = url
    return lastResource
  }
}
