import { randomBytes } from 'node:crypto'
import type { RequestHead } from '../http-server/http-server.ts'
import { headerValuesOf } from '../http/header-fields.ts'
import { createRouter, type Resource } from '../http/router.ts'

/** Visible ASCII. */
const VALID_ID = /^[\x21-\x7e]{1,128}$/
const ID_PREFIX = `${randomBytes(8).toString('hex')}-`
let generatedCount = 0
const REQUEST_ID: unique symbol = Symbol('id')

/** The id of a request, in its response and log: the client's own, or a new one if that could not stand in a log. */
export function getRequestId(request: Pick<RequestHead, 'rawHeaders'> & { [REQUEST_ID]?: string | undefined }): string {
  return (request[REQUEST_ID] ??= readRequestId(request) ?? `${ID_PREFIX}${++generatedCount}`)
}

function readRequestId({ rawHeaders = [] }: Pick<RequestHead, 'rawHeaders'>): string | undefined {
  const values = headerValuesOf(rawHeaders, 'x-request-id')
  return values.length === 1 && VALID_ID.test(values[0]!) ? values[0] : undefined
}

export type FindResource = (request: RequestHead) => Resource<string> | undefined

/** The path of `OPTIONS *`, which asks about the whole server. */
export const ASTERISK_PATH = '*'

/** `*`, or the form of it that a client sends to a proxy (RFC 9112 section 3.2.4). */
const ASTERISK_TARGET = /^(?:\*|https?:\/\/[^/?]+)$/i

/** Makes the function that routes the requests of the program. It is asked several times in a row for each. */
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
