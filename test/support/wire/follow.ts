import type { Server } from 'node:http'
import { get, send } from './service.ts'

/** Follows the links from a path to the last list. */
export async function follow(
  server: Server,
  path: string,
  between: () => void = () => undefined,
): Promise<readonly string[]> {
  const bodies: string[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const { headers, body } = await send(server, get('ada', next))
    bodies.push(body)
    const link = /^<(.+)>; rel="next"$/.exec(headers['link'] ?? '')?.[1]
    next = link === undefined ? undefined : new URL(link, 'http://host/plants').href.slice('http://host'.length)
    between()
  }
  return bodies
}
