import { ERRORS, type ErrorName } from '../http/errors.ts'
import { ref, type Content, type Operation, type Reference, type Response, type Schema } from './description.ts'

/**
 * The errors that any request may get. OpenAPI has no place for the responses to other paths and methods, so each
 * operation lists them too.
 */
const ANY: readonly ErrorName[] = [
  'noResource',
  'methodNotAllowed',
  'malformedRequest',
  'requestTimeout',
  'expectationFailed',
  'tooManyFields',
  'unknownTransferCoding',
]

/** A body of JSON. */
export function json(schema: Schema | Reference, example: unknown): { readonly content: Content } {
  return { content: { 'application/json': { schema, example } } }
}

/** The responses of these errors and of those that any request may get, by their status. */
export function errors(...names: readonly ErrorName[]): Operation['responses'] {
  const all = [...names, ...ANY]
  const responses: Record<string, Response> = {}
  for (const status of all.map(statusOf)) {
    responses[status] = error(all.filter((name) => statusOf(name) === status))
  }
  return responses
}

function statusOf(name: ErrorName): number {
  return Math.trunc(ERRORS[name].error / 100)
}

/** One response for errors of the same status. */
function error(names: readonly ErrorName[]): Response {
  const headers: Record<string, Reference> = {}
  const examples: Record<string, { readonly value: object }> = {}
  for (const name of names) {
    const { error, message, headers: fields } = ERRORS[name]
    examples[name] = { value: { error, message } }
    for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = ref(`headers/${fields[i]}`)
    if (name === 'methodNotAllowed') headers['Allow'] = ref('headers/Allow')
  }
  return {
    description: names.map((name) => ERRORS[name].message).join(' Or: '),
    headers,
    content: { 'application/json': { schema: ref('schemas/Error'), examples } },
  }
}
