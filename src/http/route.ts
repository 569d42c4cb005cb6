import { isHost } from './header-fields.ts'
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
    const prefix = basePath + path.replace('{id}', '')
    return { path, hasId: path.endsWith('/{id}'), prefix, escaped: new RegExp(writtenAs(prefix), 'y') }
  })

  return function route(target) {
    const from = inOriginForm(target)
    const queryAt = from.indexOf('?')
    const end = queryAt === -1 ? from.length : queryAt
    for (const { path, hasId, prefix, escaped } of resources) {
      let start = prefix.length
      // A pattern takes longer, and few escape what they need not.
      if (!from.startsWith(prefix)) {
        escaped.lastIndex = 0
        if (!escaped.test(from)) continue
        start = escaped.lastIndex
      }
      if (hasId !== end > start) continue
      const id = from.slice(start, end)
      if (id.includes('/')) continue
      return { path, id: decodePercent(id), query: from.slice(end + 1) }
    }
    return undefined
  }
}

/**
 * Removes scheme and authority of a target in absolute form (RFC 9112 section 3.2.2), where an empty path is `/` (RFC 9110
 * section 4.2.3). Returns a target of any other form unchanged, which matches no resource.
 */
function inOriginForm(target: string): string {
  if (target.startsWith('/')) return target
  const [, host = '', rest = ''] = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]*)(.*)$/is.exec(target) ?? []
  if (!isHost(host)) return target
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** A pattern for a path: an escaped slash divides no segments. */
function writtenAs(path: string): string {
  return path
    .split('/')
    .map((segment) => escapable(decodePercent(segment)!))
    .join('/')
}
