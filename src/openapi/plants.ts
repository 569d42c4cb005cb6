import type { ErrorName } from '../http/errors.ts'
import type { ResourceMethods, ResourcePath } from '../operations.ts'
import { errors, getAndHead, json, NO_STORE, options, ref, type PathItem } from './description.ts'

export type PlantPaths = Readonly<{ [Path in ResourcePath]: PathItem<Lowercase<ResourceMethods[Path]> | 'options'> }>

const TOKEN: readonly ErrorName[] = ['noToken', 'tokenRefused']
const WRITE: readonly ErrorName[] = [...TOKEN, 'readOnlyToken']
const BODY: readonly ErrorName[] = ['notJson', 'bodyTooLarge', 'wrongContentType', 'wrongContentEncoding']
const STORE: readonly ErrorName[] = ['unexpected', 'storeUnavailable', 'outcomeUnknown']
const TAGS = ['plants']
// Operations have it, because Swagger UI leaves the parameters of a path out if a deep link opens an operation.
const ID = [ref('parameters/id')]
const PLANT = { name: 'Monstera deliciosa', tag: 'tropical' }

export const PLANT_PATHS: PlantPaths = {
  '/plants': {
    ...getAndHead({
      tags: TAGS,
      operationId: 'listPlants',
      summary: 'List plants',
      description:
        'Lists plants in ascending order of their ids. If `limit`, or a limit of the service, cuts the list ' +
        'short, `Link` leads to the next one. A client that follows the links gets each plant once.',
      parameters: [ref('parameters/limit'), ref('parameters/after'), ref('parameters/include')],
      responses: {
        200: {
          description: 'The plants.',
          headers: { ...NO_STORE, Link: ref('headers/Link') },
          ...json({ type: 'array', items: ref('schemas/ListedPlant') }, [PLANT]),
        },
        ...errors('badQuery', ...TOKEN, ...STORE),
      },
    }),
    post: {
      tags: TAGS,
      operationId: 'createPlant',
      summary: 'Create plant',
      requestBody: { required: true, description: 'A plant.', ...json(ref('schemas/NewPlant'), { id: 1, ...PLANT }) },
      responses: {
        200: { description: 'The plant, without its id.', headers: NO_STORE, ...json(ref('schemas/Plant'), PLANT) },
        ...errors(...BODY, 'notPlant', 'idTaken', ...WRITE, ...STORE),
      },
    },
    options: options({ tags: TAGS, operationId: 'getPlantsOptions' }),
  },
  '/plants/{id}': {
    delete: {
      tags: TAGS,
      operationId: 'deletePlant',
      summary: 'Delete plant',
      parameters: ID,
      responses: {
        204: { description: 'The plant is deleted.', headers: NO_STORE },
        ...errors('badId', 'noPlant', ...WRITE, ...STORE),
      },
    },
    // A path with a malformed escape needs a token.
    options: options({ tags: TAGS, operationId: 'getPlantOptions', parameters: ID }, ...TOKEN),
  },
}
