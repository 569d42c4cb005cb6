import { decodePercent, escapable } from './percent.ts'

export interface Resource<Path extends string> {
  readonly path: Path
  /** The segment for `{id}`, decoded; empty if there is none, undefined if an escape in it is malformed. */
  readonly id: string | undefined
  readonly query: string
}

export type Router<Path extends string> = (target: string) => Resource<Path> | undefined

export function createRouter<Path extends string>(basePath: string, paths: readonly Path[]): Router<Path> {
  const resources = paths.map((path) => {
    const hasId = path.endsWith('/{id}')
    const id = hasId ? '[^/]+' : ''
    return { path, hasId, pattern: new RegExp(`^${writtenAs(basePath)}${writtenAs(path.replace('{id}', ''))}${id}$`) }
  })

  return function route(target) {
    const queryAt = target.indexOf('?')
    const path = withoutAuthority(queryAt === -1 ? target : target.slice(0, queryAt))
    const found = resources.find(({ pattern }) => pattern.test(path))
    if (found === undefined) return undefined
    const id = found.hasId ? decodePercent(path.slice(path.lastIndexOf('/') + 1)) : ''
    return { path: found.path, id, query: queryAt === -1 ? '' : target.slice(queryAt + 1) }
  }
}

/** Any request may have the absolute form (RFC 9112 section 3.2.2), where no path is `/` (RFC 9110 section 4.2.3). */
const withoutAuthority = (path: string): string =>
  path.startsWith('/') ? path : path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*(?:\/|$)/i, '/')

/** A pattern for a path: an escaped slash divides no segments. */
function writtenAs(path: string): string {
  return path
    .split('/')
    .map((segment) => escapable(decodePercent(segment)!))
    .join('/')
}
