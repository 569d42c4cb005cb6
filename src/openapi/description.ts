/**
 * The part of OpenAPI 3.1 that this service uses, with the names of its specification. Arrays are not readonly, as the
 * types of OpenAPI tools take no readonly ones.
 */
export interface Description<Paths> {
  readonly openapi: '3.1.0'
  readonly info: Texts<'title' | 'version' | 'summary' | 'description'> & {
    readonly license: Texts<'name' | 'identifier'>
  }
  readonly tags: Texts<'name' | 'description'>[]
  readonly security: SecurityRequirement[]
  readonly paths: Paths
  readonly components: Components
}

type Texts<Name extends string> = Readonly<Record<Name, string>>

/** The names of security schemes, each with its scopes. */
type SecurityRequirement = Readonly<Record<string, string[]>>

/** A path, with the operations of its methods. */
export type PathItem<Method extends string> = Readonly<Record<Method, Operation>> & {
  /** Those that all operations of the path have. */
  readonly parameters?: Reference[]
}

export interface Operation {
  readonly tags: string[]
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** Empty if no token is needed. */
  readonly security?: SecurityRequirement[]
  readonly parameters?: (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly description: string; readonly content: Content }
  /** By their status. */
  readonly responses: Readonly<Record<string, Response>>
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header | Reference>>
  readonly content?: Content
}

/** The bodies by their media type. */
export type Content = Readonly<Record<'application/json', MediaType>>

interface MediaType {
  readonly schema: Schema | Reference
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

/** Names one of the {@link Components}. */
export interface Reference {
  readonly $ref: string
}

export interface Components {
  readonly securitySchemes: Readonly<Record<'bearerToken', Texts<'scheme' | 'description'> & { readonly type: 'http' }>>
  readonly schemas: Readonly<Record<'Plant' | 'NewPlant' | 'Error', Schema>>
  readonly parameters: Readonly<Record<'id' | 'limit' | 'after', Parameter>>
  readonly headers: Readonly<Record<string, Header>>
}

export interface Parameter extends Header {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
}

export interface Header {
  readonly description: string
  /** Whether each such message has it. */
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

/**
 * Names a component.
 * @param path such as `schemas/Plant`
 */
export function ref(path: string): Reference {
  return { $ref: `#/components/${path}` }
}

/**
 * Describes a header field.
 * @param required whether each message that lists the field has it
 */
export function header(description: string, example: string, required = false): Header {
  return { description, required, schema: { type: 'string' }, example }
}
