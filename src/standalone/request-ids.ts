import { randomUUID } from 'node:crypto'

/** Visible ASCII. Two fields would be joined by a comma and a space. */
const ID = /^[\x21-\x7e]{1,128}$/

const ids = new WeakMap<WeakKey, string>()

/** Chooses the id of a request: the client's own, or a new one if that could not stand in a log. */
export function chooseId(sent: string | undefined): string {
  return sent !== undefined && ID.test(sent) ? sent : randomUUID()
}

/** The id that the response to a request and all lines of the log about it share. */
export function idOf(request: WeakKey, sent?: string): string {
  let id = ids.get(request)
  if (id === undefined) ids.set(request, (id = chooseId(sent)))
  return id
}
