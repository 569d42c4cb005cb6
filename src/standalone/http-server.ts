import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { HttpError } from '../http/errors.ts'
import { arrivedAt } from '../http/request-queue.ts'
import { addHeaders, respond, type BaseResponseEvent, type HttpResponse } from '../http/respond.ts'
import { createObservedServer, type Limits, type PlantServer } from '../http-server/create-server.ts'
import { chain } from '../maybe-promise.ts'
import { performance } from '../timers.ts'

export type HttpServer = PlantServer

export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'socket'> & {
  readonly rawHeaders: string[] | undefined
}

/** Returns the header fields to add to the response to a request, as [name, value, name, value…]. */
export type GetCommonFields = (request: RequestHead) => readonly string[]

export interface Observer {
  readonly onRequest: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  readonly onRejection: ((error: HttpError, request: IncomingMessage | undefined) => void) | undefined
}

export function createHttpServer(
  listener: RequestListener,
  limits: Partial<Limits> & { readonly optimizeEmptyRequests?: boolean },
  getCommonFields: GetCommonFields,
  observer?: Observer,
): HttpServer {
  return createObservedServer(listener, limits, {
    onRequest(request, response) {
      addHeaders(response, getCommonFields(request))
      observer?.onRequest?.(request, response)
    },
    onRejection: observer?.onRejection,
  })
}

export type OnResponse = (event: BaseResponseEvent) => void

/** Sends a response and reports it to `onResponse`. @param resource the route of the request, if any */
export function sendResponse(
  request: IncomingMessage,
  response: ServerResponse,
  result: HttpResponse,
  onResponse?: OnResponse,
  resource?: string,
): void {
  const startedAt = arrivedAt(response)
  void chain(respond(request, response, result), ({ bytes, complete }) => {
    const { status, error } = result
    const durationMs = performance.now() - startedAt
    onResponse?.({ request, resource, status, error, bytes, complete, durationMs })
  })
}
