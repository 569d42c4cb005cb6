import { VERSION } from '../version.ts'
import { header, type OpenApiDocument, type Parameter, type ValueSchema } from './description.ts'
import { PLANT_PATHS, type PlantPaths } from './plant-paths.ts'

/**
 * Any text without U+0000. Patterns can't require well-formed Unicode. The escape is `\x00`, because some client
 * generators replace `\u0000` with a NUL byte in the code that they generate.
 */
const TEXT = { type: 'string', pattern: '^[^\\x00]*$' } as const

const INT64 = { type: 'integer', format: 'int64' } as const
const ID: ValueSchema = {
  ...INT64,
  description:
    'The identification number of the plant, unique among the plants of its owner. Parse it as a 64-bit integer: ' +
    'doubles are exact only up to 2^53.',
}
const LIMIT: ValueSchema = { type: 'integer', format: 'int32', minimum: 0 }
const INCLUDE: ValueSchema = { type: 'string', enum: ['id'] }
const NAME: ValueSchema = { ...TEXT, description: 'The name of the plant.' }
const TAG: ValueSchema = { ...TEXT, description: 'A tag that specifies the type of the plant.' }

/** The type of {@link openapi}. */
export type PlantStoreDescription = OpenApiDocument<PlantPaths>

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
  paths: PLANT_PATHS,
  components: {
    securitySchemes: {
      bearerToken: { type: 'http', scheme: 'bearer', description: 'A `b64token` (RFC 6750 section 2.1).' },
    },
    schemas: {
      Plant: { type: 'object', required: ['name'], properties: { name: NAME, tag: TAG }, additionalProperties: false },
      ListedPlant: {
        type: 'object',
        description: 'A plant in a list. Has an `id` only if the request includes `include=id`.',
        required: ['name'],
        properties: { id: ID, name: NAME, tag: TAG },
        additionalProperties: false,
      },
      NewPlant: {
        type: 'object',
        description: 'Unknown members are ignored.',
        required: ['id', 'name'],
        properties: { id: ID, name: NAME, tag: TAG },
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
      'Cache-Control': header(
        'Prevents caches from storing the response (RFC 9111 section 5.2.2.5).',
        'no-store',
        true,
      ),
      Allow: header('The methods that the resource supports.', 'GET, HEAD, POST, OPTIONS', true),
      'WWW-Authenticate': header(
        'The authentication scheme, and why a token was rejected (RFC 6750 section 3).',
        'Bearer realm="plant-store"',
        true,
      ),
      'Retry-After': header('The number of seconds to wait before retrying.', '1', true),
      Accept: header('The media type that the service accepts.', 'application/json'),
      'Accept-Encoding': header('The content coding that the service accepts.', 'identity'),
    },
  },
  webhooks: {},
}

function parameter(
  location: Parameter['in'],
  name: string,
  description: string,
  example: number | string,
  schema: ValueSchema,
) {
  return { name, in: location, description, required: location === 'path', schema, example }
}
