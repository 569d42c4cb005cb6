import { createRouter, type Resource } from '../http/route.ts'
import type { RequestHead } from '../http-server/http-server.ts'

/** A request keeps its resource itself, as it keeps its id. */
const KEY: unique symbol = Symbol('resource')

export type ResourceOf = (
  request: RequestHead & { [KEY]?: Resource<string> | undefined },
) => Resource<string> | undefined

/** Makes the function that routes each request of the program, once. */
export function createResources(paths: readonly string[]): ResourceOf {
  const route = createRouter('', paths)
  return (request) => {
    if (!(KEY in request)) request[KEY] = route(request.url!)
    return request[KEY]
  }
}
