import {
  errorResponses,
  getAndHead,
  header,
  jsonContent,
  NO_STORE,
  optionsOperation,
} from '../../openapi/description.ts'
import type { OpenApiDocument, ObjectSchema, OperationObject, PathItem, Response } from '../../openapi/description.ts'
import { openapi } from '../../openapi/openapi.ts'
import type { PlantPaths } from '../../openapi/plant-paths.ts'

type ProgramPathItem = PathItem<'get' | 'head' | 'options'>

type ProgramPaths = Readonly<Record<'/livez' | '/readyz' | '/openapi.json', ProgramPathItem>>

const PROGRAM_TAG = 'program'
const ETAG_HEADER = header('Identifies this version of the description (RFC 9110 section 8.8.3).', '"k5Zl6FR3"', true)
const IF_NONE_MATCH_HEADER = header(
  'The entity tags of the cached versions, or `*` for any (RFC 9110 section 13.1.2).',
  '"k5Zl6FR3"',
)

export const programDescription: OpenApiDocument<PlantPaths & ProgramPaths> & {
  readonly servers: readonly { readonly url: string }[]
} = {
  ...openapi,
  // Relative to the URL of the description (OpenAPI 3.1.0 section 4.8.5), so it's correct under any path prefix.
  servers: [{ url: '.' }],
  tags: [
    ...openapi.tags,
    { name: PROGRAM_TAG, description: 'Endpoints of the standalone server, which need no token.' },
  ],
  paths: {
    ...openapi.paths,
    '/livez': describeGet({
      operationId: 'getLiveness',
      summary: 'Check liveness',
      responses: { 200: probeResponse('The server is running.', 'live'), ...errorResponses() },
    }),
    '/readyz': describeGet({
      operationId: 'getReadiness',
      summary: 'Check readiness',
      responses: {
        200: probeResponse('The server can handle requests.', 'ready'),
        ...errorResponses('storeUnavailable'),
      },
    }),
    '/openapi.json': describeGet({
      operationId: 'getDescription',
      summary: 'Get the OpenAPI description',
      parameters: [{ name: 'If-None-Match', in: 'header', ...IF_NONE_MATCH_HEADER }],
      responses: {
        200: {
          description: 'This OpenAPI description.',
          headers: { ETag: ETAG_HEADER },
          ...jsonContent({ type: 'object' }, { openapi: '3.1.0' }),
        },
        304: { description: 'The cached description is up to date.', headers: { ETag: ETAG_HEADER } },
        ...errorResponses(),
      },
    }),
  },
}

function describeGet(get: Omit<OperationObject, 'tags' | 'security'>): ProgramPathItem {
  return {
    ...getAndHead({ tags: [PROGRAM_TAG], security: [], ...get }),
    options: optionsOperation({ tags: [PROGRAM_TAG], operationId: `${get.operationId}Options` }),
  }
}

function probeResponse(description: string, status: string): Response {
  const properties: ObjectSchema['properties'] = { status: { type: 'string', enum: [status] } }
  return {
    description,
    headers: NO_STORE,
    ...jsonContent({ type: 'object', required: ['status'], properties }, { status }),
  }
}
