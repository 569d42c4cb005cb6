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
    if (path.startsWith(below) && !path.includes('/', below.length)) return plantAt(path.slice(below.length), query)

    const segments = (path.startsWith('/') ? path : withoutAuthority(path)).split('/')
    if (segments.length < collection.length || segments.length > collection.length + 1) return undefined
    for (let i = 0; i < collection.length; i++) {
      if (decodeSegment(segments[i]!) !== collection[i]) return undefined
    }
    if (segments.length === collection.length) return { path: '/plants', id: '', query }
    return plantAt(segments.at(-1)!, query)
  }
}

function plantAt(segment: string, query: string): Resource | undefined {
  return segment === '' ? undefined : { path: '/plants/{id}', id: decodeSegment(segment), query }
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
