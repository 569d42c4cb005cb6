import { VERSION } from '../version.ts'
import { COMPONENTS } from './components.ts'
import type { Description } from './description.ts'
import { PLANT_PATHS, type PlantPaths } from './plants.ts'

/** The type of {@link openapi}. */
export type PlantStoreDescription = Description<PlantPaths>

/**
 * The interface description, an OpenAPI 3.1 document. It names no server: its paths begin wherever the service is
 * mounted. It is shared and read-only; to change something, copy it: `{ ...openapi, servers: [{ url: '/api/v1' }] }`.
 */
export const openapi: PlantStoreDescription = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: VERSION,
    summary: 'Creates, lists and deletes plants.',
    description:
      'A bearer token stands for an owner. Each owner has plants of its own and sees no others, so two owners may use ' +
      'the same id. The body of an error has its code in `error`; the first three digits of the code are the status.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  tags: [{ name: 'plants', description: 'The plants of the owner that the token stands for.' }],
  security: [{ bearerToken: [] }],
  paths: PLANT_PATHS,
  components: COMPONENTS,
}
