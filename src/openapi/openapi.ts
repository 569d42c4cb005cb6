import { ERRORS, type ErrorName } from '../http/errors.ts'
import { VERSION } from '../version.ts'

interface Operation {
  readonly tags: readonly ['plants' | 'service']
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly security?: readonly []
  readonly parameters?: readonly Reference[]
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, Response>>
}

interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Reference>>
  readonly content?: object
}

interface Reference {
  readonly $ref: string
}

/** What `node:http` refuses, and what may go wrong in any service. */
const COMMON: readonly ErrorName[] = ['malformedRequest', 'requestTimeout', 'expectationFailed', 'tooManyFields']

const TOKEN: readonly ErrorName[] = ['noToken', 'tokenRefused']
const WRITE: readonly ErrorName[] = ['readOnlyToken']
const BODY: readonly ErrorName[] = ['notJson', 'bodyTooLarge', 'wrongContentType', 'wrongContentEncoding']
const STORE: readonly ErrorName[] = ['unexpected', 'storeUnavailable', 'outcomeUnknown']

/** What any operation on the plants may be answered beside its success. */
const PLANTS: readonly ErrorName[] = [...COMMON, ...TOKEN, 'unknownTransferCoding', ...STORE]

const MONSTERA = { name: 'Monstera deliciosa', tag: 'tropical' }

/** Text that every store keeps: without U+0000. That it is well-formed Unicode no pattern can say. */
const TEXT = { type: 'string', pattern: '^[^\\u0000]*$' }
const NAME = { ...TEXT, description: 'The name of the plant.' }
const TAG = { ...TEXT, description: 'Says what type of plant it is.' }

/** The description of the interface, in OpenAPI 3.1. */
export const openapi: Readonly<Record<string, unknown>> = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: VERSION,
    summary: 'Creates, lists and deletes plants.',
    description:
      'A bearer token stands for an owner. Each owner has plants of its own and sees no others, so that ' +
      'two owners may use the same id. Of the `error` code of an answer, the first three digits are its status.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/', description: 'Where this description was read.' }],
  tags: [
    { name: 'plants', description: 'The plants of the owner whose token it is.' },
    { name: 'service', description: 'The standalone service itself; no token is needed.' },
  ],
  security: [{ bearerToken: [] }],
  paths: {
    '/plants': {
      ...getAndHead({
        tags: ['plants'],
        operationId: 'listPlants',
        summary: 'List plants',
        description:
          'Lists plants ascending by id. Where `limit`, or a limit of the service, cuts the list short, ' +
          '`Link` leads to the next one; following the links gives each plant once.',
        parameters: [ref('parameters/limit'), ref('parameters/after')],
        responses: {
          200: {
            ...json('The plants.', { type: 'array', items: ref('schemas/Plant') }, [MONSTERA]),
            headers: { Link: ref('headers/Link') },
          },
          ...errors('badQuery', ...PLANTS),
        },
      }),
      post: {
        tags: ['plants'],
        operationId: 'createPlant',
        summary: 'Create plant',
        requestBody: { required: true, ...json('A plant.', ref('schemas/NewPlant'), { id: 1, ...MONSTERA }) },
        responses: {
          200: json('The plant, without its id.', ref('schemas/Plant'), MONSTERA),
          ...errors(...BODY, 'notPlant', 'idTaken', ...WRITE, ...PLANTS),
        },
      },
      options: options('plants', 'getPlantsOptions'),
    },
    '/plants/{id}': {
      parameters: [ref('parameters/id')],
      delete: {
        tags: ['plants'],
        operationId: 'deletePlant',
        summary: 'Delete plant',
        responses: { 204: { description: 'It is deleted.' }, ...errors('badId', 'noPlant', ...WRITE, ...PLANTS) },
      },
      options: options('plants', 'getPlantOptions', ...TOKEN),
    },
    '/livez': page('getLiveness', 'Whether the service lives', { status: 'live' }),
    '/readyz': page('getReadiness', 'Whether the service can serve', { status: 'ready' }, 'storeUnavailable'),
    '/openapi.json': page('getDescription', 'This description', { openapi: '3.1.0' }),
  },
  components: {
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
        description: 'Other members are ignored.',
        required: ['id', 'name'],
        properties: {
          id: {
            type: 'integer',
            format: 'int64',
            description: 'Identifies the plant among those of its owner; exact beyond 2^53 too.',
          },
          name: NAME,
          tag: TAG,
        },
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: {
          error: { type: 'integer', format: 'int32', description: 'Says what went wrong, to a program.' },
          message: { type: 'string', description: 'Says what went wrong, to people.' },
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
        schema: { type: 'integer', format: 'int64' },
        example: 42,
      },
      limit: {
        name: 'limit',
        in: 'query',
        description: 'At most this many plants; without it all.',
        schema: { type: 'integer', format: 'int32', minimum: 0 },
        example: 10,
      },
      after: {
        name: 'after',
        in: 'query',
        description: 'Only plants whose id is greater.',
        schema: { type: 'integer', format: 'int64' },
        example: 42,
      },
    },
    headers: {
      Link: header('Where the list goes on (RFC 8288).', '<?limit=10&after=42>; rel="next"'),
      Allow: header('The methods that the resource has.', 'GET, HEAD, POST, OPTIONS'),
      'WWW-Authenticate': header('How to ask (RFC 6750 section 3).', 'Bearer realm="plant-store"', true),
      'Retry-After': header('After how many seconds to try again.', '1', true),
      Accept: header('The media type that is understood.', 'application/json'),
      'Accept-Encoding': header('The content coding that is understood.', 'identity'),
    },
  },
}

function ref(path: string): Reference {
  return { $ref: `#/components/${path}` }
}

function header(description: string, example: string, required = false): object {
  return { description, required, schema: { type: 'string' }, example }
}

function json(description: string, schema: object, example: unknown): Response {
  return { description, content: { 'application/json': { schema, example } } }
}

/** The responses of the errors of these names, and as `default` those that any path and method may have. */
function errors(...names: readonly ErrorName[]): Operation['responses'] {
  const responses: Record<string, Response> = { default: error('noResource', 'methodNotAllowed') }
  for (const status of names.map(statusOf)) {
    responses[status] = error(...names.filter((name) => statusOf(name) === status))
  }
  return responses
}

function statusOf(name: ErrorName): number {
  return Math.trunc(ERRORS[name].error / 100)
}

function error(...names: readonly ErrorName[]): Response {
  const headers: Record<string, Reference> = {}
  const examples: Record<string, object> = {}
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

/** An operation and its HEAD, which is answered the same without a body. */
function getAndHead(get: Operation): { readonly get: Operation; readonly head: Operation } {
  const responses: Record<string, Response> = {}
  for (const [status, { description, headers = {} }] of Object.entries(get.responses)) {
    responses[status] = { description, headers }
  }
  const operationId = `${get.operationId}Head`
  return { get, head: { ...get, operationId, summary: `${get.summary}, without the body`, responses } }
}

function options(tag: 'plants' | 'service', operationId: string, ...names: readonly ErrorName[]): Operation {
  return {
    tags: [tag],
    operationId,
    summary: 'Ask for the methods that the resource has',
    security: [],
    responses: {
      204: { description: 'Allow has the methods.', headers: { Allow: ref('headers/Allow') } },
      ...errors(...COMMON, ...names),
    },
  }
}

/** A page of the standalone service. */
function page(operationId: string, summary: string, example: object, ...names: readonly ErrorName[]): object {
  return {
    ...getAndHead({
      tags: ['service'],
      operationId,
      summary,
      security: [],
      responses: { 200: json('Yes.', { type: 'object' }, example), ...errors(...COMMON, ...names) },
    }),
    options: options('service', `${operationId}Options`),
  }
}
