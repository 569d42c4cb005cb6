import { createRouter, type Router } from '../../http/route.ts'
import { OPERATIONS, RESOURCE_PATHS, type ResourcePath } from '../../operations.ts'
import { PROGRAM_METHODS, PROGRAM_PATHS } from './program-paths.ts'

/** Finds what of all that the program serves a request target names. */
export type Routes = Router<string>

/** @param documentPaths those of the documents for people */
export function createRoutes(documentPaths: readonly string[]): Routes {
  return createRouter('', [...RESOURCE_PATHS, ...PROGRAM_PATHS, ...documentPaths])
}

/** The methods of a path that the program serves. */
export function methodsOf(path: string): readonly string[] {
  return path in OPERATIONS ? [...Object.keys(OPERATIONS[path as ResourcePath]), 'OPTIONS'] : PROGRAM_METHODS
}
