// The types in this file are object type literals, not interfaces, for two reasons. TypeScript inlines literals when a
// host emits declarations, whereas a reference to a type that this package doesn't export is an error (TS2742, TS2883).
// And only literals have an implicit index signature, which the types of OpenAPI tools require.

/**
 * The subset of OpenAPI 3.1 that this service uses. Arrays are mutable, because the types of OpenAPI tools don't accept
 * readonly arrays.
 */
export type OpenApiDocument<Paths> = Readonly<{
  openapi: '3.1.0'
  info: StringFields<'title' | 'version' | 'summary' | 'description'> &
    Readonly<{ license: StringFields<'name' | 'identifier'> }>
  tags: StringFields<'name' | 'description'>[]
  security: Readonly<Record<string, string[]>>[]
  paths: Paths
  components: Readonly<{
    securitySchemes: Readonly<{ bearerToken: Readonly<{ type: 'http'; scheme: string; description: string }> }>
    schemas: Readonly<Record<'Plant' | 'ListedPlant' | 'NewPlant' | 'Error', ObjectSchema>>
    parameters: Readonly<Record<'id' | 'limit' | 'after' | 'include', Parameter>>
    headers: Readonly<Record<string, Header>>
    responses: Readonly<Record<string, Response>>
  }>
  /** Always empty; the types of express-openapi-validator require this member. */
  webhooks: Readonly<Record<string, never>>
}>

type StringFields<Name extends string> = Readonly<Record<Name, string>>

export type PathItem<Method extends string> = Readonly<Record<Method, OperationObject>>

export type OperationObject = Readonly<{
  tags: string[]
  operationId: string
  summary: string
  description?: string
  parameters?: Reference[]
  requestBody?: Readonly<{ required: boolean; description: string; content: Content }>
  responses: Readonly<Record<string, Response | Reference>>
}>

export type Response = Readonly<{
  description: string
  headers?: Readonly<Record<string, Reference>>
  content?: Content
}>

export type Content = Readonly<Record<'application/json', MediaType>>

type MediaType = Readonly<{
  schema: Readonly<{ type: 'array'; items: Reference }> | Reference
  example?: unknown
  examples?: Readonly<Record<string, Readonly<{ value: unknown }>>>
}>

export type Reference = StringFields<'$ref'>

export type Parameter = Readonly<{ name: string; in: 'path' | 'query' }> & Header

export type Header = Readonly<{ description: string; required: boolean; schema: ValueSchema; example: unknown }>

// Objects and values have separate schema types, because TypeScript can't inline a recursive type in declarations.

export type ObjectSchema = Readonly<{
  type: 'object'
  description?: string
  required: string[]
  properties: Readonly<Record<string, ValueSchema>>
  additionalProperties?: boolean
}>

export type ValueSchema = Readonly<{
  type: 'string' | 'integer'
  description?: string
  pattern?: string
  enum?: string[]
  format?: 'int32' | 'int64'
  minimum?: number
}>
