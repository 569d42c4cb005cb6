import type { IncomingMessage, RequestListener } from 'node:http'
import { withDeadline } from '../maybe-promise.ts'
import { HttpError } from '../http/errors.ts'
import { readHeaderFields } from '../http/header-fields.ts'
import { errorResponse, jsonResponse, respond, type HttpResponse } from '../http/respond.ts'
import { readSegments } from '../http/route.ts'
import { openapi } from '../openapi/openapi.ts'
import { StoreUnavailableError, type Store } from '../plants/store.ts'
import { describeError, log } from './log.ts'

type Page = () => HttpResponse | Promise<HttpResponse>

interface PageOptions {
  readonly store: Store
  readonly storeTimeoutMs: number
  readonly isDraining: () => boolean
}

const ALLOW = 'GET, HEAD, OPTIONS'

/**
 * Makes the listener for the pages of the program itself, none of which needs a token: whether it lives,
 * whether it is ready, and what its interface is.
 * @param notFound answers where there is no such page
 */
export function createPages(options: PageOptions, notFound: RequestListener): RequestListener {
  const isReady = shareCalls(() => askStore(options))

  async function readiness(): Promise<HttpResponse> {
    if (options.isDraining()) return unavailable('The service is shutting down.')
    return (await isReady()) ? jsonResponse(200, [], { status: 'ready' }) : unavailable()
  }

  const pages = new Map<string | undefined, Page>([
    ['livez', () => jsonResponse(200, [], { status: 'live' })],
    ['readyz', readiness],
    ['openapi.json', () => jsonResponse(200, [], openapi)],
  ])

  return function answerPage(request, response) {
    const [root, name, ...others] = readSegments(request.url!)
    const page = root === '' && others.length === 0 ? pages.get(name) : undefined
    if (page === undefined) notFound(request, response)
    else void callPage(page, request).then((answer) => respond(request, response, answer))
  }
}

async function callPage(page: Page, { rawHeaders, method }: IncomingMessage): Promise<HttpResponse> {
  try {
    readHeaderFields(rawHeaders)
    switch (method) {
      case 'GET':
      case 'HEAD':
        return await page()
      case 'OPTIONS':
        return { status: 204, headers: ['Allow', ALLOW], body: undefined }
      default:
        throw new HttpError('methodNotAllowed', undefined, { headers: ['Allow', ALLOW] })
    }
  } catch (error) {
    // No page throws anything else.
    return errorResponse(error as HttpError)
  }
}

async function askStore({ store, storeTimeoutMs }: PageOptions): Promise<boolean> {
  try {
    await withDeadline(store.ping?.(), storeTimeoutMs, () => {
      return new StoreUnavailableError(`the store did not answer a ping within ${storeTimeoutMs} ms`)
    })
    return true
  } catch (error) {
    log('unready', { reason: describeError(error) })
    return false
  }
}

/** Lets those who ask during a call share it: nobody needs a token to ask, and each call is work. */
function shareCalls<T>(call: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined
  return () => (pending ??= call().finally(() => (pending = undefined)))
}

function unavailable(message?: string): HttpResponse {
  return errorResponse(new HttpError('storeUnavailable', message))
}
