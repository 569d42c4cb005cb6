import type { ErrorName } from '../http/errors.ts'
import type { ResourceMethods, ResourcePath } from '../operations.ts'
import {
  errorResponses,
  getAndHead,
  jsonContent,
  NO_STORE,
  optionsOperation,
  ref,
  type PathItem,
} from './description.ts'

export type PlantPaths = Readonly<{ [Path in ResourcePath]: PathItem<Lowercase<ResourceMethods[Path]> | 'options'> }>

const TOKEN_ERRORS: readonly ErrorName[] = ['missingToken', 'invalidToken']
const WRITE_ERRORS: readonly ErrorName[] = [...TOKEN_ERRORS, 'readOnlyToken']
const BODY_ERRORS: readonly ErrorName[] = [
  'invalidJson',
  'bodyTooLarge',
  'unsupportedContentType',
  'unsupportedContentEncoding',
]
const STORE_ERRORS: readonly ErrorName[] = ['internalError', 'storeUnavailable', 'outcomeUnknown']
const TAGS = ['plants']
// Repeated in each operation, because Swagger UI ignores the parameters of a path when a deep link opens an operation.
const ID = [ref('parameters/id')]
const EXAMPLE_PLANT = { name: 'Monstera deliciosa', tag: 'tropical' }

export const PLANT_PATHS: PlantPaths = {
  '/plants': {
    ...getAndHead({
      tags: TAGS,
      operationId: 'listPlants',
      summary: 'List plants',
      description:
        'Returns plants in ascending order of their ids. If `limit`, or a limit that the service imposes, cuts the ' +
        'list short, the `Link` header points to the next page. A client that follows the links gets each plant once.',
      parameters: [ref('parameters/limit'), ref('parameters/after'), ref('parameters/include')],
      responses: {
        200: {
          description: 'The plants.',
          headers: { ...NO_STORE, Link: ref('headers/Link') },
          ...jsonContent({ type: 'array', items: ref('schemas/ListedPlant') }, [EXAMPLE_PLANT]),
        },
        ...errorResponses('invalidQuery', ...TOKEN_ERRORS, ...STORE_ERRORS),
      },
    }),
    post: {
      tags: TAGS,
      operationId: 'createPlant',
      summary: 'Create a plant',
      requestBody: {
        required: true,
        description: 'The plant to create.',
        ...jsonContent(ref('schemas/NewPlant'), { id: 1, ...EXAMPLE_PLANT }),
      },
      responses: {
        200: {
          description: 'The created plant, without its id.',
          headers: NO_STORE,
          ...jsonContent(ref('schemas/Plant'), EXAMPLE_PLANT),
        },
        ...errorResponses(...BODY_ERRORS, 'invalidPlant', 'idTaken', ...WRITE_ERRORS, ...STORE_ERRORS),
      },
    },
    options: optionsOperation({ tags: TAGS, operationId: 'getPlantsOptions' }),
  },
  '/plants/{id}': {
    delete: {
      tags: TAGS,
      operationId: 'deletePlant',
      summary: 'Delete a plant',
      parameters: ID,
      responses: {
        204: { description: 'The plant was deleted.', headers: NO_STORE },
        ...errorResponses('invalidId', 'plantNotFound', ...WRITE_ERRORS, ...STORE_ERRORS),
      },
    },
    // OPTIONS doesn't require a token, except on a path with a malformed percent-escape.
    options: optionsOperation({ tags: TAGS, operationId: 'getPlantOptions', parameters: ID }, ...TOKEN_ERRORS),
  },
}
