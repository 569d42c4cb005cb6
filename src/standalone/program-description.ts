import type { ErrorName } from '../http/errors.ts'
import type { Description, ObjectSchema, PathItem, Response } from '../openapi/description.ts'
import { openapi } from '../openapi/openapi.ts'
import { getAndHead, options } from '../openapi/operations.ts'
import type { PlantPaths } from '../openapi/plants.ts'
import { errors, json } from '../openapi/responses.ts'
import type { ProgramPath } from './program-paths.ts'

type ProgramPathItem = PathItem<'get' | 'head' | 'options'>

/** The tag of the program's operations. */
const PROGRAM = 'program'

/** Describes all that the program serves: the plants, and its own paths. */
export const programDescription: Description<PlantPaths & Readonly<Record<ProgramPath, ProgramPathItem>>> = {
  ...openapi,
  tags: [...openapi.tags, { name: PROGRAM, description: 'The program that serves the plants. It needs no token.' }],
  paths: {
    ...openapi.paths,
    '/livez': describeGet('getLiveness', 'Ask whether the program lives', {
      description: 'It lives.',
      ...json(statusSchema('live'), { status: 'live' }),
    }),
    '/readyz': describeGet(
      'getReadiness',
      'Ask whether the program can serve',
      { description: 'It can serve.', ...json(statusSchema('ready'), { status: 'ready' }) },
      'storeUnavailable',
    ),
    '/openapi.json': describeGet('getDescription', 'Get this description', {
      description: 'The description.',
      ...json({ type: 'object' }, { openapi: '3.1.0' }),
    }),
  },
}

/** @param names the errors of this GET beside those of any request */
function describeGet(
  operationId: string,
  summary: string,
  ok: Response,
  ...names: readonly ErrorName[]
): ProgramPathItem {
  const responses = { 200: ok, ...errors(...names) }
  return {
    ...getAndHead({ tags: [PROGRAM], operationId, summary, security: [], responses }),
    options: options(PROGRAM, `${operationId}Options`),
  }
}

function statusSchema(status: string): ObjectSchema {
  return { type: 'object', required: ['status'], properties: { status: { type: 'string', enum: [status] } } }
}
