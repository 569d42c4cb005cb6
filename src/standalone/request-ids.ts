import { randomBytes } from 'node:crypto'
import type { RequestHead } from '../http-server/http-server.ts'

/** Visible ASCII. Two fields would be joined by a comma and a space. */
const ID = /^[\x21-\x7e]{1,128}$/

/** The id of a request is kept on it: a map beside all requests would cost more than everything else about ids. */
const KEY: unique symbol = Symbol('id')

/**
 * The id that the response to a request and all lines of the log about it share: the client's own, or a new one if that
 * could not stand in a log.
 */
export function idOf(request: RequestHead & { [KEY]?: string }): string {
  const id = request[KEY] ?? chooseId(request.headers?.['x-request-id'])
  request[KEY] = id
  return id
}

function chooseId(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && ID.test(sent) ? sent : createId()
}

/** How many bytes an id has, before they are written as text. */
const ID_BYTES = 18
const ID_CHARS = (ID_BYTES * 4) / 3

/** Random text for the next ids. Most of what an id costs is asking for randomness, so this is done for many at once. */
let random = ''
let usedChars = 0

function createId(): string {
  if (usedChars === random.length) {
    random = randomBytes(128 * ID_BYTES).toString('base64url')
    usedChars = 0
  }
  return random.slice(usedChars, (usedChars += ID_CHARS))
}
