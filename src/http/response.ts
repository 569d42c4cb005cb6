import { encodeUtf8 } from '../plants/text.ts'
import type { ErrorCode } from './errors.ts'

export interface HttpResponse {
  readonly status: number
  /** Name, value, name, value… Each name is given once. */
  readonly headers: readonly string[]
  /** The type of the body; `application/json` if absent. */
  readonly contentType?: string
  /** Text in UTF-8, one character for each byte, whole or in pieces; or its bytes. Undefined if there is no body. */
  readonly body: string | Uint8Array | AsyncIterable<string> | undefined
  readonly error?: ErrorCode
}

export function jsonResponse(value: object): HttpResponse & { readonly body: string } {
  return { status: 200, headers: [], body: encodeUtf8(JSON.stringify(value)) }
}
