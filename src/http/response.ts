import { encodeUtf8 } from '../plants/text.ts'
import type { ErrorCode } from './errors.ts'

/** A response, before it is sent. */
export interface HttpResponse {
  readonly status: number
  /** Name, value, name, value… Each name is given once. */
  readonly headers: readonly string[]
  /** The type of the body; `application/json` if absent. */
  readonly contentType?: string
  /**
   * Text in UTF-8, one character for each byte, whole or piece by piece; or its bytes, for a text that is sent many
   * times. Undefined if there is no body.
   */
  readonly body: string | Uint8Array | AsyncIterable<string> | undefined
  /** The code of the error, if the request failed. */
  readonly error?: ErrorCode
}

/** The response 200 whose body is the JSON text of a value. */
export function jsonResponse(value: object): HttpResponse & { readonly body: string } {
  return { status: 200, headers: [], body: encodeUtf8(JSON.stringify(value)) }
}
