import { header, type Components, type Parameter, type Schema } from './description.ts'

/**
 * Text that every store keeps: without U+0000. No pattern can say that it is well-formed Unicode. Some generators of
 * clients write what `\u0000` means into their source, and keep `\x00` as it stands.
 */
const TEXT = { type: 'string', pattern: '^[^\\x00]*$' } as const

const INT64 = { type: 'integer', format: 'int64' } as const

const NAME: Schema = { ...TEXT, description: 'The name of the plant.' }
const TAG: Schema = { ...TEXT, description: 'The type of the plant.' }

/** The parts that several operations share. */
export const COMPONENTS: Components = {
  securitySchemes: {
    bearerToken: { type: 'http', scheme: 'bearer', description: 'A `b64token` of RFC 6750.' },
  },
  schemas: {
    Plant: {
      type: 'object',
      required: ['name'],
      properties: { name: NAME, tag: TAG },
      additionalProperties: false,
    },
    NewPlant: {
      type: 'object',
      description: 'The service ignores all other members.',
      required: ['id', 'name'],
      properties: {
        id: {
          ...INT64,
          description: 'Identifies the plant among the plants of its owner. It is exact beyond 2^53 too.',
        },
        name: NAME,
        tag: TAG,
      },
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
    id: {
      name: 'id',
      in: 'path',
      required: true,
      description: 'The id of the plant, in decimal.',
      schema: INT64,
      example: 42,
    },
    limit: query('limit', 'List at most this many plants. Without it, list all.', 10, {
      type: 'integer',
      format: 'int32',
      minimum: 0,
    }),
    after: query('after', 'List only plants whose id is greater.', 42, INT64),
  },
  headers: {
    Link: header('Leads to the rest of the list (RFC 8288).', '<?limit=10&after=42>; rel="next"'),
    Allow: header('The methods that the resource has.', 'GET, HEAD, POST, OPTIONS', true),
    'WWW-Authenticate': header('How to send a token (RFC 6750 section 3).', 'Bearer realm="plant-store"', true),
    'Retry-After': header('After how many seconds to try again.', '1', true),
    Accept: header('The media type that the service understands.', 'application/json'),
    'Accept-Encoding': header('The content coding that the service understands.', 'identity'),
  },
}

function query(name: string, description: string, example: number, schema: Schema): Parameter {
  return { name, in: 'query', description, required: false, schema, example }
}
