import { randomBytes } from 'node:crypto'
import type { RequestHead } from '../http-server/http-server.ts'
import { fieldsOf } from '../http/header-fields.ts'
import { createRouter, type Resource } from '../http/route.ts'

/** Visible ASCII. */
const ID = /^[\x21-\x7e]{1,128}$/
const PREFIX = `${randomBytes(8).toString('hex')}-`
let count = 0
const KEY: unique symbol = Symbol('id')

/** The id of a request, in its response and log: the client's own, or a new one if that could not stand in a log. */
export function idOf(request: Pick<RequestHead, 'rawHeaders'> & { [KEY]?: string | undefined }): string {
  return (request[KEY] ??= sentId(request) ?? `${PREFIX}${++count}`)
}

function sentId({ rawHeaders = [] }: Pick<RequestHead, 'rawHeaders'>): string | undefined {
  const sent = fieldsOf(rawHeaders, 'x-request-id')
  return sent.length === 1 && ID.test(sent[0]!) ? sent[0] : undefined
}

export type ResourceOf = (request: RequestHead) => Resource<string> | undefined

/** The path of `OPTIONS *`, which asks about the whole server. */
export const WHOLE_SERVER = '*'

/** `*`, or the form of it that a client sends to a proxy (RFC 9112 section 3.2.4). */
const SERVER_TARGET = /^(?:\*|https?:\/\/[^/?]+)$/i

/** Makes the function that routes the requests of the program. It is asked several times in a row for each. */
export function createResources(paths: readonly string[]): ResourceOf {
  const route = createRouter('', paths)
  let routed: string | undefined
  let resource: Resource<string> | undefined
  return ({ method, url }) => {
    if (method === 'OPTIONS' && SERVER_TARGET.test(url!)) return { path: WHOLE_SERVER, id: '', query: '' }
    if (url !== routed) resource = route(url!)
    routed = url
    return resource
  }
}
