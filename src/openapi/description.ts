import { HTTP_ERRORS, type ErrorName } from '../http/errors.ts'

/** The part of OpenAPI 3.1 that this service uses. The types of OpenAPI tools take no readonly arrays. */
export interface Description<Paths> {
  readonly openapi: '3.1.0'
  readonly info: Texts<'title' | 'version' | 'summary' | 'description'> & {
    readonly license: Texts<'name' | 'identifier'>
  }
  readonly tags: Texts<'name' | 'description'>[]
  readonly security: SecurityRequirement[]
  readonly paths: Paths
  readonly components: {
    readonly securitySchemes: { readonly bearerToken: Texts<'scheme' | 'description'> & { readonly type: 'http' } }
    readonly schemas: Readonly<Record<'Plant' | 'ListedPlant' | 'NewPlant' | 'Error', Schema>>
    readonly parameters: Readonly<Record<'id' | 'limit' | 'after' | 'include', Parameter>>
    readonly headers: Readonly<Record<string, Header>>
  }
}

type Texts<Name extends string> = Readonly<Record<Name, string>>
type SecurityRequirement = Readonly<Record<string, string[]>>

export type PathItem<Method extends string> = Readonly<Record<Method, OperationObject>> & {
  readonly parameters?: Reference[]
}

export interface OperationObject extends Texts<'operationId' | 'summary'> {
  readonly tags: string[]
  readonly description?: string
  readonly security?: SecurityRequirement[]
  readonly parameters?: (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly description: string; readonly content: Content }
  readonly responses: Readonly<Record<string, Response>>
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header | Reference>>
  readonly content?: Content
}

type Content = Readonly<Record<'application/json', MediaType>>

interface MediaType {
  readonly schema: Schema | Reference
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export type Reference = Texts<'$ref'>

export interface Parameter extends Header {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
}

export interface Header {
  readonly description: string
  readonly required: boolean
  readonly schema: Schema
  readonly example: unknown
}

export interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer'
  readonly description?: string
  readonly required?: string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean
  readonly items?: Schema | Reference
  readonly pattern?: string
  readonly enum?: string[]
  readonly format?: 'int32' | 'int64'
  readonly minimum?: number
}

export const ref = (path: string): Reference => ({ $ref: `#/components/${path}` })

export function header(description: string, example: string, required = false): Header {
  return { description, required, schema: { type: 'string' }, example }
}

export function json(schema: Schema | Reference, example: unknown): { readonly content: Content } {
  return { content: { 'application/json': { schema, example } } }
}

/** The header that every response has except documents and those to OPTIONS. */
export const NO_STORE: Readonly<Record<string, Reference>> = { 'Cache-Control': ref('headers/Cache-Control') }

/** Any request may get these. OpenAPI has no place for other paths and methods, so each operation lists them too. */
const ANY: readonly ErrorName[] = [
  'noResource',
  'methodNotAllowed',
  'malformedRequest',
  'requestTimeout',
  'expectationFailed',
  'tooManyFields',
  'unknownTransferCoding',
]

export function errors(...names: readonly ErrorName[]): OperationObject['responses'] {
  const all = [...names, ...ANY]
  const statuses = all.map((name) => HTTP_ERRORS[name].status)
  return Object.fromEntries(statuses.map((status) => [status, error(all.filter((_, i) => statuses[i] === status))]))
}

function error(names: readonly ErrorName[]): Response {
  const headers: Record<string, Reference> = { ...NO_STORE }
  const examples: Record<string, { readonly value: object }> = {}
  for (const name of names) {
    const { error, message, headers: fields } = HTTP_ERRORS[name]
    examples[name] = { value: { error, message } }
    for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = ref(`headers/${fields[i]}`)
    if (name === 'methodNotAllowed') headers['Allow'] = ref('headers/Allow')
  }
  return {
    description: names.map((name) => HTTP_ERRORS[name].message).join(' Or: '),
    headers,
    content: { 'application/json': { schema: ref('schemas/Error'), examples } },
  }
}

/** Adds to a GET its HEAD, which gets the same responses without their bodies. */
export function getAndHead(get: OperationObject): { readonly get: OperationObject; readonly head: OperationObject } {
  const responses = Object.fromEntries(
    Object.entries(get.responses).map(([status, { description, headers = {} }]) => [status, { description, headers }]),
  )
  const operationId = `${get.operationId}Head`
  return { get, head: { ...get, operationId, summary: `${get.summary}, without the body`, responses } }
}

export function options(tag: string, operationId: string, ...names: readonly ErrorName[]): OperationObject {
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
