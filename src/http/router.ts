import { isValidHost } from './header-fields.ts'
import { decodePercent, toEscapablePattern } from './percent-encoding.ts'

export interface Resource<Path extends string> {
  readonly path: Path
  /** The segment for `{id}`, decoded; empty if there is none, undefined if an escape in it is malformed. */
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
      // A pattern takes longer, and few escape what they need not.
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
 * Removes scheme and authority of a target in absolute form (RFC 9112 section 3.2.2), where an empty path is `/` (RFC 9110
 * section 4.2.3). Returns a target of any other form unchanged, which matches no resource.
 */
function toOriginForm(target: string): string {
  if (target.startsWith('/')) return target
  const [, host = '', pathAndQuery = ''] = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]*)(.*)$/is.exec(target) ?? []
  if (!isValidHost(host)) return target
  return pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`
}

/** A pattern for a path: an escaped slash divides no segments. */
function toPathPattern(path: string): string {
  return path
    .split('/')
    .map((segment) => toEscapablePattern(decodePercent(segment)!))
    .join('/')
}
