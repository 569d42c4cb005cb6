import type { ErrorName } from '../http/errors.ts'
import { ref, type Operation, type Response } from './description.ts'
import { errors } from './responses.ts'

/** Adds to a GET its HEAD, which gets the same responses without their bodies. */
export function getAndHead(get: Operation): { readonly get: Operation; readonly head: Operation } {
  const responses: Record<string, Response> = {}
  for (const [status, { description, headers = {} }] of Object.entries(get.responses)) {
    responses[status] = { description, headers }
  }
  const operationId = `${get.operationId}Head`
  return { get, head: { ...get, operationId, summary: `${get.summary}, without the body`, responses } }
}

/**
 * Describes OPTIONS of a path.
 * @param names the errors that it may get beside those of any request
 */
export function options(tag: string, operationId: string, ...names: readonly ErrorName[]): Operation {
  return {
    tags: [tag],
    operationId,
    summary: 'Ask for the methods of the resource',
    security: [],
    responses: {
      204: { description: '`Allow` lists the methods.', headers: { Allow: ref('headers/Allow') } },
      ...errors(...names),
    },
  }
}
