import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { corsFields, preflightFields, type Origins } from './cors.ts'
import type { CommonFields } from './http-server.ts'
import { chooseId, idOf } from './request-ids.ts'

/** Makes the header fields that every response of the program has: the id of the request, and those for browsers. */
export function createCommonFields(origins: Origins | undefined): CommonFields {
  return ({ origin, 'x-request-id': sentId }: IncomingHttpHeaders, request?: IncomingMessage) => {
    const sent = typeof sentId === 'string' ? sentId : undefined
    const fields = ['X-Request-Id', request === undefined ? chooseId(sent) : idOf(request, sent)]
    if (origins === undefined) return fields
    fields.push(...corsFields(origins, origin))
    if (request !== undefined && fields.includes('Access-Control-Allow-Origin'))
      fields.push(...preflightFields(request))
    return fields
  }
}
