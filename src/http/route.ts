import { decodePercent } from './percent.ts'

/** The resource that a request target names. */
export interface Resource<Path extends string> {
  /** One of the paths that the router was made for. */
  readonly path: Path
  /** The segment in the place of `{id}`, decoded; empty if the path has none, undefined if an escape in it is malformed. */
  readonly id: string | undefined
  /** The text after the `?`, as it was sent. */
  readonly query: string
}

/** Finds the resource that a request target names. */
export type Router<Path extends string> = (target: string) => Resource<Path> | undefined

/**
 * @param basePath the segments before each path, such as `/api/v1`, or an empty text
 * @param paths such as `/plants` and `/plants/{id}`; `{id}` is one segment that is not empty
 */
export function createRouter<Path extends string>(basePath: string, paths: readonly Path[]): Router<Path> {
  const base = basePath.split('/').map(decodePercent)
  const templates = paths.map((path) => {
    const segments = [...base, ...path.split('/').slice(1)]
    const text = basePath + path
    return {
      path,
      text,
      segments,
      idAt: segments.indexOf('{id}', base.length),
      start: text.endsWith('/{id}') ? text.slice(0, -4) : undefined,
    }
  })

  return function route(target) {
    const queryAt = target.indexOf('?')
    const written = queryAt === -1 ? target : target.slice(0, queryAt)
    const query = queryAt === -1 ? '' : target.slice(queryAt + 1)

    // Nearly every target is written like its template. To compare that costs less than to compare the segments.
    for (const { path, text, idAt, start } of templates) {
      if (idAt === -1 && written === text) return { path, id: '', query }
      if (start === undefined || !written.startsWith(start) || written.length === start.length) continue
      if (!written.includes('/', start.length)) return { path, id: decodePercent(written.slice(start.length)), query }
    }

    const segments = readSegments(written)
    for (const { path, segments: wanted, idAt } of templates) {
      if (segments.length !== wanted.length) continue
      const isNamed = wanted.every((segment, i) => (i === idAt ? segments[i] !== '' : segments[i] === segment))
      if (isNamed) return { path, id: idAt === -1 ? '' : segments[idAt], query }
    }
    return undefined
  }
}

/** The segments of a target's path, the first of which is empty; undefined for one with a malformed escape. */
export function readSegments(target: string): readonly (string | undefined)[] {
  return withoutAuthority(target.split('?', 1)[0]!).split('/').map(decodePercent)
}

/** RFC 9112 section 3.2.2: a server accepts the absolute form, `GET http://host/plants`, in any request. */
function withoutAuthority(target: string): string {
  return target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
}
