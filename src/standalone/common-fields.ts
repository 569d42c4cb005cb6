import type { Cors } from './cors.ts'
import type { CommonFields } from '../http-server/http-server.ts'
import { idOf } from './request-ids.ts'

/** Makes the header fields that every response of the program has: the id of the request, and those for browsers. */
export function createCommonFields(cors?: Cors): CommonFields {
  return (request) => {
    const id = idOf(request)
    return cors === undefined ? ['X-Request-Id', id] : ['X-Request-Id', id, ...cors.fields(request)]
  }
}
