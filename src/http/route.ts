import { decodePercent } from './percent.ts'

export interface Resource<Path extends string> {
  /** One of the paths that the router was made for. */
  readonly path: Path
  /** The segment in the place of `{id}`, decoded; empty if there is none, undefined if an escape in it is malformed. */
  readonly id: string | undefined
  /** The text after the `?`, as it was sent. */
  readonly query: string
}

/** Finds the resource that a request target names. */
export type Router<Path extends string> = (target: string) => Resource<Path> | undefined

/**
 * @param basePath the segments before each path, such as `/api/v1`, or an empty text
 * @param paths such as `/plants` and `/plants/{id}`; `{id}` is the last segment, and not empty
 */
export function createRouter<Path extends string>(basePath: string, paths: readonly Path[]): Router<Path> {
  const base = normalize(basePath)
  const templates = paths.map((path) => {
    return { path, start: base + path.replace('{id}', ''), hasId: path.endsWith('/{id}') }
  })

  function find(written: string, query: string): Resource<Path> | undefined {
    for (const { path, start, hasId } of templates) {
      if (!hasId && written === start) return { path, id: '', query }
      if (!hasId || !written.startsWith(start) || written.length === start.length) continue
      if (!written.includes('/', start.length)) return { path, id: decodePercent(written.slice(start.length)), query }
    }
    return undefined
  }

  return function route(target) {
    const queryAt = target.indexOf('?')
    const written = queryAt === -1 ? target : target.slice(0, queryAt)
    const query = queryAt === -1 ? '' : target.slice(queryAt + 1)
    // Nearly every target is written as the paths are. To find that out costs less than to rewrite it.
    return find(written, query) ?? find(normalize(written), query)
  }
}

/**
 * Writes the path of a target without its authority (RFC 9112 section 3.2.2: a server accepts the absolute form,
 * `GET http://host/plants`, in any request), and without escapes but those that a segment needs.
 */
function normalize(path: string): string {
  const segments = path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').split('/')
  return segments.map((text) => decodePercent(text)?.replace(/[/%]/g, encodeURIComponent) ?? text).join('/')
}
