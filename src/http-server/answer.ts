import type { IncomingMessage, ServerResponse } from 'node:http'
import { respond, type Sent } from '../http/respond.ts'
import type { HttpResponse } from '../http/response.ts'
import { andThen } from '../maybe-promise.ts'

/** Is told of a response that no service made: what it was, how much of it was sent, and when that began. */
export type OnAnswer = (
  request: IncomingMessage,
  response: HttpResponse,
  sent: Sent,
  startedAt: number,
  path?: string,
) => void

/** Sends a response, and tells of it, with the path that the request named if there is one. */
export function answer(
  request: IncomingMessage,
  response: ServerResponse,
  found: HttpResponse,
  onAnswer: OnAnswer | undefined,
  path?: string,
): void {
  const startedAt = performance.now()
  void andThen(respond(request, response, found), (sent) => onAnswer?.(request, found, sent, startedAt, path))
}
