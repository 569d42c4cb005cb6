import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Cors } from './cors.ts'
import type { CommonFields } from './http-server.ts'
import { chooseId, idOf } from './request-ids.ts'

/** Makes the header fields that every response of the program has: the id of the request, and those for browsers. */
export function createCommonFields(cors?: Cors): CommonFields {
  return (headers: IncomingHttpHeaders, request?: IncomingMessage) => {
    const { 'x-request-id': sentId } = headers
    const sent = typeof sentId === 'string' ? sentId : undefined
    const id = request === undefined ? chooseId(sent) : idOf(request, sent)
    return cors === undefined ? ['X-Request-Id', id] : ['X-Request-Id', id, ...cors(headers, request)]
  }
}
