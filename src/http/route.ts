/** What a request target names. */
export interface Resource {
  readonly path: '/plants' | '/plants/{id}'
  /** The segment of the id, decoded; empty for `/plants`, undefined where an escape in it is malformed. */
  readonly id: string | undefined
  /** What follows the `?`, as it was sent. */
  readonly query: string
}

/**
 * Makes the function that says which resource a request target names.
 * @param basePath where the resources begin: empty, or segments such as `/api/v1`
 */
export function createRouter(basePath: string): (target: string) => Resource | undefined {
  const exact = `${basePath}/plants`
  const below = `${exact}/`
  const collection = exact.split('/').map(decodeSegment)

  return function route(target) {
    const queryAt = target.indexOf('?')
    const path = queryAt === -1 ? target : target.slice(0, queryAt)
    const query = queryAt === -1 ? '' : target.slice(queryAt + 1)
    // Nearly every target is written as it is here, which costs less to see than its segments do.
    if (path === exact) return { path: '/plants', id: '', query }
    if (path.startsWith(below) && !path.includes('/', below.length)) {
      return plantAt(decodeSegment(path.slice(below.length)), query)
    }

    const segments = readSegments(path)
    if (collection.some((segment, i) => segment !== segments[i])) return undefined
    switch (segments.length - collection.length) {
      case 0:
        return { path: '/plants', id: '', query }
      case 1:
        return plantAt(segments.at(-1), query)
      default:
        return undefined
    }
  }
}

function plantAt(id: string | undefined, query: string): Resource | undefined {
  return id === '' ? undefined : { path: '/plants/{id}', id, query }
}

/** The segments of a target's path, the first of which is empty; undefined for one with a malformed escape. */
export function readSegments(target: string): readonly (string | undefined)[] {
  const [path = ''] = target.split('?', 1)
  return (path.startsWith('/') ? path : withoutAuthority(path)).split('/').map(decodeSegment)
}

/** RFC 9112 section 3.2.2: a server accepts the absolute form, `GET http://host/plants`, in any request. */
function withoutAuthority(target: string): string {
  return target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
}

/** Decodes a segment once, so that `%2F` never becomes a separator nor `%2531` a digit. */
function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
