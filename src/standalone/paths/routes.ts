import { createRouter } from '../../http/route.ts'
import { OPERATIONS, RESOURCE_PATHS, type ResourcePath } from '../../operations.ts'
import { PROGRAM_METHODS, PROGRAM_PATHS } from './program-paths.ts'

/** All that the program serves. */
export interface Routes {
  /** The path, as the interface description writes it, that a request target names; undefined if there is none. */
  find(target: string): string | undefined
  /** Whether a request target names a resource, and all of it can be read. */
  has(target: string): boolean
  /** The methods of such a path. */
  methodsOf(path: string): readonly string[]
}

/** @param documentPaths those of the documents for people */
export function createRoutes(documentPaths: readonly string[]): Routes {
  const route = createRouter<string>('', [...RESOURCE_PATHS, ...PROGRAM_PATHS, ...documentPaths])
  return {
    find: (target) => route(target)?.path,
    has: (target) => route(target)?.id !== undefined,
    methodsOf(path) {
      return path in OPERATIONS ? [...Object.keys(OPERATIONS[path as ResourcePath]), 'OPTIONS'] : PROGRAM_METHODS
    },
  }
}
