import { isValidHost } from './header-fields.ts'
import { decodePercent, toEscapablePattern } from './percent-encoding.ts'

export interface Resource<Path extends string> {
  readonly path: Path
  /**
   * The decoded `{id}` segment; empty if the path has no such segment, undefined if the segment has a malformed escape.
   */
  readonly id: string | undefined
  readonly query: string
}

export type Router<Path extends string> = (target: string) => Resource<Path> | undefined

export function createRouter<Path extends string>(basePath: string, paths: readonly Path[]): Router<Path> {
  const resources = paths.map((path) => {
    const prefix = basePath + path.replace('{id}', '')
    return { path, hasId: path.endsWith('/{id}'), prefix, pattern: new RegExp(toPathPattern(prefix), 'y') }
  })

  return function route(target) {
    const originForm = toOriginForm(target)
    const queryIndex = originForm.indexOf('?')
    const pathEnd = queryIndex === -1 ? originForm.length : queryIndex
    for (const { path, hasId, prefix, pattern } of resources) {
      let start = prefix.length
      // Try the prefix first, because the pattern is slower, and only needed for paths with unnecessary escapes.
      if (!originForm.startsWith(prefix)) {
        pattern.lastIndex = 0
        if (!pattern.test(originForm)) continue
        start = pattern.lastIndex
      }
      if (hasId !== pathEnd > start) continue
      const id = originForm.slice(start, pathEnd)
      if (id.includes('/')) continue
      return { path, id: decodePercent(id), query: originForm.slice(pathEnd + 1) }
    }
    return undefined
  }
}

/**
 * Removes the scheme and authority from a target in absolute form (RFC 9112 section 3.2.2). An empty path becomes `/`
 * (RFC 9110 section 4.2.3). Targets of other forms are returned unchanged, and don't match any resource.
 */
function toOriginForm(target: string): string {
  if (target.startsWith('/')) return target
  const [, host = '', pathAndQuery = ''] = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]*)(.*)$/is.exec(target) ?? []
  if (!isValidHost(host)) return target
  return pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`
}

/** Returns a pattern for a path. An escaped slash isn't a separator. */
function toPathPattern(path: string): string {
  return path
    .split('/')
    .map((segment) => toEscapablePattern(decodePercent(segment)!))
    .join('/')
}
