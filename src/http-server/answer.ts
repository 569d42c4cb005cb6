import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from '../http/errors.ts'
import { respond, type HttpResponse } from '../http/respond.ts'
import type { HostRequest } from '../http/transport.ts'
import { arrivalOf } from '../http/turn.ts'
import { andThen } from '../maybe-promise.ts'

/** What became of a response that no service made. A service tells the same of its own, and the owner too. */
export interface AnswerEvent {
  readonly request: HostRequest
  readonly resource: string | undefined
  readonly status: number
  readonly error: ErrorCode | undefined
  readonly bytes: number
  readonly complete: boolean
  readonly durationMs: number
}

export type OnAnswer = (event: AnswerEvent) => void

/** Sends a response, and tells of it; `resource` is the path that the request names, if there is one. */
export function answer(
  request: IncomingMessage,
  response: ServerResponse,
  found: HttpResponse,
  onAnswer?: OnAnswer,
  resource?: string,
): void {
  const startedAt = arrivalOf(response)
  void andThen(respond(request, response, found), ({ bytes, complete }) => {
    const { status, error } = found
    const durationMs = performance.now() - startedAt
    onAnswer?.({ request, resource, status, error, bytes, complete, durationMs })
  })
}
