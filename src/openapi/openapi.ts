import { ERRORS, HTTP_ERRORS, type ErrorName } from '../http/errors.ts'
import type { ResourcePath } from '../http/router.ts'
import { OPERATIONS, type Operation } from '../operations.ts'
import { PLANT_TEXTS } from '../plants/plant.ts'
import { VERSION } from '../version.ts'

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- Each OpenAPI tool has its own types for the details.
type Untyped = any

/**
 * The type of {@link openapi}. It consists of literals, so that TypeScript can write it into the declarations of a host,
 * and of mutable arrays, because the types of OpenAPI tools don't accept readonly arrays.
 */
export type PlantStoreDescription = Readonly<{
  openapi: '3.1.0'
  info: Readonly<Record<'title' | 'version' | 'summary' | 'description', string> & { license: Untyped }>
  tags: { name: string; description: string }[]
  security: Record<string, string[]>[]
  paths: Readonly<Record<'/plants' | '/plants/{id}', Untyped>>
  components: Readonly<Record<'securitySchemes' | 'schemas' | 'parameters' | 'headers' | 'responses', Untyped>>
  /** Always empty; the types of express-openapi-validator require this member. */
  webhooks: Readonly<Record<string, never>>
}>

const EXAMPLE_PLANT = Object.fromEntries(Object.entries(PLANT_TEXTS).map(([name, { example }]) => [name, example]))

/**
 * Any text without U+0000. Patterns can't require well-formed Unicode. The escape is `\x00`, because some client
 * generators replace `\u0000` with a NUL byte in the code that they generate.
 */
const TEXT = { type: 'string', pattern: '^[^\\x00]*$' }
const INT64 = { type: 'integer', format: 'int64' }
const ID = {
  ...INT64,
  description: 'Unique among the plants of the owner. Parse it as a 64-bit integer: doubles are exact only up to 2^53.',
}
const LIMIT = { type: 'integer', format: 'int32', minimum: 0 }
const INCLUDE = { type: 'string', enum: ['id'] }
const TEXTS = Object.fromEntries(
  Object.entries(PLANT_TEXTS).map(([name, { description }]) => [name, { ...TEXT, description }]),
)
const REQUIRED_TEXTS = Object.entries(PLANT_TEXTS).flatMap(([name, { isRequired }]) => (isRequired ? [name] : []))

/** The errors of operations with a body, and of operations that write. Every other error can result from any request. */
const BODY_STATUSES = [409, 413, 415]
const WRITE_STATUSES = [403]
const ERROR_STATUSES = new Set(Object.values(HTTP_ERRORS).map(({ status }) => status))

interface OperationDescription {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly parameters?: object[]
  readonly requestBody?: object
  readonly responses: object
}

/** What the operation table doesn't contain. */
const DESCRIPTIONS: Readonly<Record<string, OperationDescription>> = {
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
    responses: Object.fromEntries(Array.from(ERROR_STATUSES, (status) => [`Error${status}`, describeError(status)])),
  },
  webhooks: {},
}

function describePath(path: ResourcePath): object {
  const operations = Object.entries<Operation>(OPERATIONS[path]).map(([method, { access }]) => {
    const description = DESCRIPTIONS[`${method} ${path}`]!
    const responses: Record<string, object> = { ...description.responses }
    for (const status of ERROR_STATUSES) {
      if (access !== 'write' && WRITE_STATUSES.includes(status)) continue
      if (description.requestBody === undefined && BODY_STATUSES.includes(status)) continue
      responses[status] = ref(`responses/Error${status}`)
    }
    return [method.toLowerCase(), { tags: ['plants'], ...description, responses }] as const
  })
  return Object.fromEntries(operations)
}

/** Describes the error responses with a status. */
function describeError(status: number): object {
  const errors = Object.entries(HTTP_ERRORS).filter(([, error]) => error.status === status)
  const rows = errors.map(([name]): { error: number; headers?: object } => ERRORS[name as ErrorName])
  const fields = status === 405 ? ['Allow'] : rows.flatMap(({ headers = {} }) => Object.keys(headers))
  const examples = errors.map(([name, { error, message }]) => [name, { value: { error, message } }] as const)
  return {
    description: errors.map(([, { message }]) => message).join(' Or: '),
    headers: Object.fromEntries(fields.map((field) => [field, ref(`headers/${field}`)])),
    content: { 'application/json': { schema: ref('schemas/Error'), examples: Object.fromEntries(examples) } },
  }
}

function ref(path: string): object {
  return { $ref: `#/components/${path}` }
}

function header(description: string, example: string, required = false): object {
  return { description, required, schema: { type: 'string' }, example }
}

function jsonContent(schema: object, example: unknown): object {
  return { 'application/json': { schema, example } }
}

function parameter(
  location: 'path' | 'query',
  name: string,
  description: string,
  example: number | string,
  schema: object,
): object {
  return { name, in: location, description, required: location === 'path', schema, example }
}
