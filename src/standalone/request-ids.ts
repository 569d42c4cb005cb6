import { randomBytes } from 'node:crypto'
import type { RequestHead } from '../http-server/http-server.ts'

/** Visible ASCII. Two fields would be joined by a comma and a space. */
const ID = /^[\x21-\x7e]{1,128}$/

const PROCESS = randomBytes(8).toString('hex')

let count = 0

const KEY: unique symbol = Symbol('id')

/** The id of a request, in its response and log: the client's own, or a new one if that could not stand in a log. */
export function idOf(request: RequestHead & { [KEY]?: string | undefined }): string {
  return (request[KEY] ??= chooseId(request.headers?.['x-request-id']))
}

function chooseId(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && ID.test(sent) ? sent : `${PROCESS}-${++count}`
}
