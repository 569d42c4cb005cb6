import { HTTP_ERRORS, type ErrorName } from '../http/errors.ts'

// The types in this file are object type literals, not interfaces, for two reasons. TypeScript inlines literals when a
// host emits declarations, whereas a reference to a type that this package doesn't export is an error (TS2742, TS2883).
// And only literals have an implicit index signature, which the types of OpenAPI tools require.

/**
 * The subset of OpenAPI 3.1 that this service uses. Arrays are mutable, because the types of OpenAPI tools don't accept
 * readonly arrays.
 */
export type OpenApiDocument<Paths> = Readonly<{
  openapi: '3.1.0'
  info: Readonly<{
    title: string
    version: string
    summary: string
    description: string
    license: StringFields<'name' | 'identifier'>
  }>
  tags: StringFields<'name' | 'description'>[]
  security: SecurityRequirement[]
  paths: Paths
  components: Readonly<{
    securitySchemes: Readonly<{ bearerToken: Readonly<{ type: 'http'; scheme: string; description: string }> }>
    schemas: Readonly<Record<'Plant' | 'ListedPlant' | 'NewPlant' | 'Error', ObjectSchema>>
    parameters: Readonly<Record<'id' | 'limit' | 'after' | 'include', Parameter>>
    headers: Readonly<Record<string, Header>>
  }>
  /** Always empty; the types of express-openapi-validator require this member. */
  webhooks: Readonly<Record<string, never>>
}>

type StringFields<Name extends string> = Readonly<Record<Name, string>>
type SecurityRequirement = Readonly<Record<string, string[]>>

export type PathItem<Method extends string> = Readonly<Record<Method, OperationObject>>

export type OperationObject = Readonly<{
  tags: string[]
  operationId: string
  summary: string
  description?: string
  security?: SecurityRequirement[]
  parameters?: (Parameter | Reference)[]
  requestBody?: Readonly<{ required: boolean; description: string; content: Content }>
  responses: Readonly<Record<string, Response>>
}>

export type Response = Readonly<{
  description: string
  headers?: Readonly<Record<string, Header | Reference>>
  content?: Content
}>

type Content = Readonly<Record<'application/json', MediaType>>

type MediaType = Readonly<{
  schema: ObjectSchema | ArraySchema | Reference
  example?: unknown
  examples?: Readonly<Record<string, Readonly<{ value: unknown }>>>
}>

export type Reference = StringFields<'$ref'>

export type Parameter = Readonly<{
  name: string
  in: 'path' | 'query' | 'header'
  description: string
  required: boolean
  schema: ValueSchema
  example: unknown
}>

export type Header = Readonly<Pick<Parameter, 'description' | 'required' | 'schema' | 'example'>>

// Objects, arrays and values have separate schema types, because the types of OpenAPI tools allow `items` in arrays
// only. None of them is recursive: TypeScript can't inline a recursive type in declarations.

export type ObjectSchema = Readonly<{
  type: 'object'
  description?: string
  required?: string[]
  properties?: Readonly<Record<string, ValueSchema>>
  additionalProperties?: boolean
}>

export type ArraySchema = Readonly<{ type: 'array'; items: Reference }>

export type ValueSchema = Readonly<{
  type: 'string' | 'integer'
  description?: string
  pattern?: string
  enum?: string[]
  format?: 'int32' | 'int64'
  minimum?: number
}>

export const ref = (path: string): Reference => ({ $ref: `#/components/${path}` })

export function header(description: string, example: string, required = false): Header {
  return { description, required, schema: { type: 'string' }, example }
}

export function jsonContent(schema: MediaType['schema'], example: unknown): { readonly content: Content } {
  return { content: { 'application/json': { schema, example } } }
}

/** The `Cache-Control` header of every response except the description itself and responses to OPTIONS. */
export const NO_STORE: Readonly<Record<string, Reference>> = { 'Cache-Control': ref('headers/Cache-Control') }

/**
 * Errors that any request can get. OpenAPI can't describe the responses to other paths and methods, so each operation
 * lists 404 and 405, too.
 */
const COMMON_ERRORS: readonly ErrorName[] = [
  'pathNotFound',
  'methodNotAllowed',
  'malformedRequest',
  'requestTimeout',
  'headersTooLarge',
  'unsupportedTransferCoding',
]

export function errorResponses(...names: readonly ErrorName[]): OperationObject['responses'] {
  const allNames = [...names, ...COMMON_ERRORS]
  const statuses = allNames.map((name) => HTTP_ERRORS[name].status)
  return Object.fromEntries(
    statuses.map((status) => [status, errorResponse(allNames.filter((_, i) => statuses[i] === status))]),
  )
}

function errorResponse(names: readonly ErrorName[]): Response {
  const headers: Record<string, Reference> = { ...NO_STORE }
  const examples: Record<string, { readonly value: object }> = {}
  for (const name of names) {
    const { error, message, headers: fields } = HTTP_ERRORS[name]
    examples[name] = { value: { error, message } }
    for (const field of Object.keys(fields)) headers[field] = ref(`headers/${field}`)
    if (name === 'methodNotAllowed') headers['Allow'] = ref('headers/Allow')
  }
  return {
    description: names.map((name) => HTTP_ERRORS[name].message).join(' Or: '),
    headers,
    content: { 'application/json': { schema: ref('schemas/Error'), examples } },
  }
}

/** Returns a GET operation together with its HEAD operation, which has the same responses without their bodies. */
export function getAndHead(get: OperationObject): { readonly get: OperationObject; readonly head: OperationObject } {
  const responses = Object.fromEntries(
    Object.entries(get.responses).map(([status, { description, headers = {} }]) => [status, { description, headers }]),
  )
  const operationId = `${get.operationId}Head`
  return { get, head: { ...get, operationId, summary: `${get.summary}, headers only`, responses } }
}

export function optionsOperation(
  about: Pick<OperationObject, 'tags' | 'operationId' | 'parameters'>,
  ...names: readonly ErrorName[]
): OperationObject {
  return {
    ...about,
    summary: 'Get the allowed methods',
    security: [],
    responses: {
      204: { description: 'The `Allow` header lists the methods.', headers: { Allow: ref('headers/Allow') } },
      ...errorResponses(...names),
    },
  }
}
