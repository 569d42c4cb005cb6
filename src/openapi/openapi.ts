import { ERRORS } from '../http/errors.ts'
import type { ResourcePath } from '../http/router.ts'
import { OPERATIONS } from '../operations.ts'
import { PLANT_TEXTS } from '../plants/plant.ts'
import { VERSION } from '../version.ts'
import type { Content, Header, OpenApiDocument, OperationObject, Parameter } from './document.ts'
import type { PathItem, Reference, Response, ValueSchema } from './document.ts'

/** The type of {@link openapi}. */
export type PlantStoreDescription = OpenApiDocument<
  Readonly<{ '/plants': PathItem<'get' | 'head' | 'post'>; '/plants/{id}': PathItem<'delete'> }>
>

const TAGS = ['plants']
const EXAMPLE_PLANT = { name: 'Monstera deliciosa', tag: 'tropical' }

/**
 * Any text without U+0000. Patterns can't require well-formed Unicode. The escape is `\x00`, because some client
 * generators replace `\u0000` with a NUL byte in the code that they generate.
 */
const TEXT = { type: 'string', pattern: '^[^\\x00]*$' } as const
const INT64 = { type: 'integer', format: 'int64' } as const
const ID: ValueSchema = {
  ...INT64,
  description: 'Unique among the plants of the owner. Parse it as a 64-bit integer: doubles are exact only up to 2^53.',
}
const LIMIT: ValueSchema = { type: 'integer', format: 'int32', minimum: 0 }
const INCLUDE: ValueSchema = { type: 'string', enum: ['id'] }
const TEXTS: Readonly<Record<string, ValueSchema>> = Object.fromEntries(
  Object.entries(PLANT_TEXTS).map(([name, { description }]) => [name, { ...TEXT, description }]),
)
const REQUIRED_TEXTS = Object.entries(PLANT_TEXTS).flatMap(([name, { isRequired }]) => (isRequired ? [name] : []))

/** The errors of operations with a body, and of operations that write. Every other error can result from any request. */
const BODY_ERRORS = ['409', '413', '415']
const WRITE_ERRORS = ['403']

/** What the operation table doesn't contain. */
const DESCRIPTIONS: Readonly<Record<string, Omit<OperationObject, 'tags'>>> = {
  'GET /plants': {
    operationId: 'listPlants',
    summary: 'List plants',
    description:
      'Returns plants in ascending order of their ids. If `limit`, or a limit that the service imposes, cuts the ' +
      'list short, the `Link` header points to the next page. A client that follows the links gets each plant once.',
    parameters: [ref('parameters/limit'), ref('parameters/after'), ref('parameters/include')],
    responses: {
      200: {
        description: 'The plants.',
        headers: { Link: ref('headers/Link') },
        content: jsonContent({ type: 'array', items: ref('schemas/ListedPlant') }, [EXAMPLE_PLANT]),
      },
    },
  },
  'HEAD /plants': {
    operationId: 'listPlantsHead',
    summary: 'List plants, headers only',
    parameters: [ref('parameters/limit'), ref('parameters/after'), ref('parameters/include')],
    responses: { 200: { description: 'The same as for GET.', headers: { Link: ref('headers/Link') } } },
  },
  'POST /plants': {
    operationId: 'createPlant',
    summary: 'Create a plant',
    requestBody: {
      required: true,
      description: 'The plant to create.',
      content: jsonContent(ref('schemas/NewPlant'), { id: 1, ...EXAMPLE_PLANT }),
    },
    responses: {
      200: {
        description: 'The created plant, without its id.',
        content: jsonContent(ref('schemas/Plant'), EXAMPLE_PLANT),
      },
    },
  },
  'DELETE /plants/{id}': {
    operationId: 'deletePlant',
    summary: 'Delete a plant',
    // Part of the operation, because Swagger UI ignores the parameters of a path when a link opens an operation.
    parameters: [ref('parameters/id')],
    responses: { 204: { description: 'The plant was deleted.' } },
  },
}

/**
 * The interface description of the service, as an OpenAPI 3.1 document. It has no `servers`, because the service can be
 * mounted under any path. The object is shared and read-only; copy it if you need to change anything.
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createPlantStore, openapi } from 'plant-store'
 *
 * const description = JSON.stringify({ ...openapi, servers: [{ url: '/api/v1' }] })
 * const plants = createPlantStore({ basePath: '/api/v1', tokens: { 'a-long-random-token': 'ada' } })
 *
 * createServer((request, response) => {
 *   if (request.url === '/openapi.json') response.setHeader('Content-Type', 'application/json').end(description)
 *   else plants(request, response)
 * }).listen(3000)
 */
export const openapi: PlantStoreDescription = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: VERSION,
    summary: 'Create, list and delete plants.',
    description:
      'Every bearer token identifies an owner. Owners can access only their own plants, so two owners can use the same ' +
      'id. Error responses have an error code in `error`; its first three digits are the HTTP status.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  tags: [{ name: 'plants', description: 'The plants of the owner that the token identifies.' }],
  security: [{ bearerToken: [] }],
  paths: { '/plants': describePath('/plants'), '/plants/{id}': describePath('/plants/{id}') },
  components: {
    securitySchemes: {
      bearerToken: { type: 'http', scheme: 'bearer', description: 'A `b64token` (RFC 6750 section 2.1).' },
    },
    schemas: {
      Plant: { type: 'object', required: REQUIRED_TEXTS, properties: TEXTS, additionalProperties: false },
      ListedPlant: {
        type: 'object',
        description: 'A plant in a list. Has an `id` only if the request includes `include=id`.',
        required: REQUIRED_TEXTS,
        properties: { id: ID, ...TEXTS },
        additionalProperties: false,
      },
      NewPlant: {
        type: 'object',
        description: 'Unknown members are ignored.',
        required: ['id', ...REQUIRED_TEXTS],
        properties: { id: ID, ...TEXTS },
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: {
          error: { type: 'integer', format: 'int32', description: 'The error code, for programs.' },
          message: { type: 'string', description: 'What went wrong, for humans. The wording can change.' },
        },
        additionalProperties: false,
      },
    },
    parameters: {
      id: parameter('path', 'id', 'The id of the plant, as a decimal integer.', 42, INT64),
      limit: parameter('query', 'limit', 'The maximum number of plants to return; by default, all.', 10, LIMIT),
      after: parameter('query', 'after', 'Return only plants whose id is greater than this id.', 42, INT64),
      include: parameter('query', 'include', 'Set it to `id` to add the id to each plant.', 'id', INCLUDE),
    },
    headers: {
      Link: header('Points to the next page, if there is one (RFC 8288).', '<plants?limit=10&after=42>; rel="next"'),
      Allow: header('The methods that the resource supports.', 'GET, HEAD, POST, OPTIONS', true),
      'WWW-Authenticate': header('Why a token was rejected (RFC 6750 section 3).', 'Bearer realm="plant-store"', true),
      'Retry-After': header('The number of seconds to wait before retrying.', '1', true),
      Accept: header('The media type that the service accepts.', 'application/json'),
      'Accept-Encoding': header('The content coding that the service accepts.', 'identity'),
    },
    responses: describeErrors(),
  },
  webhooks: {},
}

function describePath<Path extends ResourcePath>(path: Path): PlantStoreDescription['paths'][Path] {
  const operations = Object.entries(OPERATIONS[path]).map(([method, { access }]) => {
    const { responses, ...description } = DESCRIPTIONS[`${method} ${path}`]!
    const errors = errorsOf(access === 'write', description.requestBody !== undefined)
    return [method.toLowerCase(), { tags: TAGS, ...description, responses: { ...responses, ...errors } }]
  })
  return Object.fromEntries(operations) as PlantStoreDescription['paths'][Path]
}

function errorsOf(isWrite: boolean, hasBody: boolean): Readonly<Record<string, Reference>> {
  const statuses = Object.keys(describeErrors()).map((name) => name.slice('Error'.length))
  const possible = statuses.filter(
    (status) => (isWrite || !WRITE_ERRORS.includes(status)) && (hasBody || !BODY_ERRORS.includes(status)),
  )
  return Object.fromEntries(possible.map((status) => [status, ref(`responses/Error${status}`)]))
}

/** Describes the error responses of each status. */
function describeErrors(): Readonly<Record<string, Response>> {
  const responses: Record<string, Response> = {}
  for (const [name, definition] of Object.entries(ERRORS)) {
    const { error, message } = definition
    const key = `Error${Math.trunc(error / 100)}`
    const fields =
      name === 'methodNotAllowed' ? ['Allow'] : Object.keys('headers' in definition ? definition.headers : {})
    const { description, headers = {}, content } = responses[key] ?? {}
    const examples = { ...content?.['application/json'].examples, [name]: { value: { error, message } } }
    responses[key] = {
      description: description === undefined ? message : `${description} Or: ${message}`,
      headers: { ...headers, ...Object.fromEntries(fields.map((field) => [field, ref(`headers/${field}`)])) },
      content: { 'application/json': { schema: ref('schemas/Error'), examples } },
    }
  }
  return responses
}

function ref(path: string): Reference {
  return { $ref: `#/components/${path}` }
}

function header(description: string, example: string, required = false): Header {
  return { description, required, schema: { type: 'string' }, example }
}

function jsonContent(schema: Content['application/json']['schema'], example: unknown): Content {
  return { 'application/json': { schema, example } }
}

function parameter(
  location: Parameter['in'],
  name: string,
  description: string,
  example: number | string,
  schema: ValueSchema,
): Parameter {
  return { name, in: location, description, required: location === 'path', schema, example }
}
