import type { IncomingMessage, ServerResponse } from 'node:http'
import { respond, type AnswerEvent, type HttpResponse } from '../http/respond.ts'
import { arrivalOf } from '../http/turn.ts'
import { andThen } from '../maybe-promise.ts'

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
