import { createRouter, type Resource } from '../http/route.ts'
import type { RequestHead } from '../http-server/http-server.ts'

export type ResourceOf = (request: RequestHead) => Resource<string> | undefined

/** Makes the function that routes the requests of the program. It is asked several times in a row for each. */
export function createResources(paths: readonly string[]): ResourceOf {
  const route = createRouter('', paths)
  let routed: string | undefined
  let resource: Resource<string> | undefined
  return ({ url }) => {
    if (url !== routed) resource = route(url!)
    routed = url
    return resource
  }
}
