import { VERSION } from '../version.ts'
import { header, type OpenApiDocument, type Parameter, type ValueSchema } from './description.ts'
import { PLANT_PATHS, type PlantPaths } from './plant-paths.ts'

/** No pattern says "well-formed". Some generators of clients write into their source what `\u0000` means. */
const TEXT = { type: 'string', pattern: '^[^\\x00]*$' } as const

const INT64 = { type: 'integer', format: 'int64' } as const
const ID: ValueSchema = {
  ...INT64,
  description: 'Identifies the plant among the plants of its owner. It is exact beyond 2^53 too.',
}
const LIMIT: ValueSchema = { type: 'integer', format: 'int32', minimum: 0 }
const INCLUDE: ValueSchema = { type: 'string', enum: ['id'] }
const NAME: ValueSchema = { ...TEXT, description: 'The name of the plant.' }
const TAG: ValueSchema = { ...TEXT, description: 'The type of the plant.' }

/** The type of {@link openapi}. */
export type PlantStoreDescription = OpenApiDocument<PlantPaths>

/**
 * The interface description, an OpenAPI 3.1 document. It names no server: its paths begin wherever the service is
 * mounted. It is shared and read-only; to change something, copy it: `{ ...openapi, servers: [{ url: '/api/v1' }] }`.
 */
export const openapi: PlantStoreDescription = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: VERSION,
    summary: 'Keeps the plants of each owner.',
    description:
      'A bearer token stands for an owner. Each owner has plants of its own and sees no others, so two owners may use ' +
      'the same id. The body of an error has its code in `error`; the first three digits of the code are the status.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  tags: [{ name: 'plants', description: 'The plants of the owner that the token stands for.' }],
  security: [{ bearerToken: [] }],
  paths: PLANT_PATHS,
  components: {
    securitySchemes: { bearerToken: { type: 'http', scheme: 'bearer', description: 'A `b64token` of RFC 6750.' } },
    schemas: {
      Plant: { type: 'object', required: ['name'], properties: { name: NAME, tag: TAG }, additionalProperties: false },
      ListedPlant: {
        type: 'object',
        description: 'A plant of a list. It has its id if `include=id` asked for it.',
        required: ['name'],
        properties: { id: ID, name: NAME, tag: TAG },
        additionalProperties: false,
      },
      NewPlant: {
        type: 'object',
        description: 'The service ignores all other members.',
        required: ['id', 'name'],
        properties: { id: ID, name: NAME, tag: TAG },
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: {
          error: { type: 'integer', format: 'int32', description: 'Tells programs what went wrong.' },
          message: { type: 'string', description: 'Tells people what went wrong.' },
        },
        additionalProperties: false,
      },
    },
    parameters: {
      id: parameter('path', 'id', 'The id of the plant, in decimal.', 42, INT64),
      limit: parameter('query', 'limit', 'List at most this many plants. Without it, list all.', 10, LIMIT),
      after: parameter('query', 'after', 'List only plants whose id is greater.', 42, INT64),
      include: parameter('query', 'include', 'Give each plant of the list its id.', 'id', INCLUDE),
    },
    headers: {
      Link: header('Leads to the rest of the list (RFC 8288).', '<plants?limit=10&after=42>; rel="next"'),
      'Cache-Control': header('Forbids caches to store the response (RFC 9111 section 5.2.2.5).', 'no-store', true),
      Allow: header('The methods that the resource has.', 'GET, HEAD, POST, OPTIONS', true),
      'WWW-Authenticate': header('How to send a token (RFC 6750 section 3).', 'Bearer realm="plant-store"', true),
      'Retry-After': header('After how many seconds to try again.', '1', true),
      Accept: header('The media type that the service understands.', 'application/json'),
      'Accept-Encoding': header('The content coding that the service understands.', 'identity'),
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
