import type { RequestListener } from 'node:http'
import { withDeadline } from '../deadline.ts'
import { HttpError } from '../http/errors.ts'
import { errorAnswer, jsonAnswer, respond, type Answer } from '../http/respond.ts'
import { openapi } from '../openapi.ts'
import { StoreUnavailableError, type Store } from '../store.ts'
import { describeError, log } from './log.ts'

type Page = () => Answer | Promise<Answer>

interface PageOptions {
  readonly store: Store
  readonly storeTimeout: number
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

  async function readiness(): Promise<Answer> {
    if (options.isDraining()) return unavailable('The service is shutting down.')
    return (await isReady()) ? jsonAnswer(200, [], { status: 'ready' }) : unavailable()
  }

  const pages = new Map<string, Page>([
    ['/livez', () => jsonAnswer(200, [], { status: 'live' })],
    ['/readyz', readiness],
    ['/openapi.json', () => jsonAnswer(200, [], openapi)],
  ])

  return function answerPage(request, response) {
    const page = pages.get(request.url!.replace(/\?.*$/s, ''))
    if (page === undefined) notFound(request, response)
    else void callPage(page, request.method).then((answer) => respond(request, response, answer))
  }
}

async function callPage(page: Page, method: string | undefined): Promise<Answer> {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return page()
    case 'OPTIONS':
      return { status: 204, headers: ['Allow', ALLOW], body: undefined }
    default:
      return errorAnswer(new HttpError('methodNotAllowed', undefined, { headers: ['Allow', ALLOW] }))
  }
}

async function askStore({ store, storeTimeout }: PageOptions): Promise<boolean> {
  try {
    await withDeadline(store.ping?.(), storeTimeout, () => {
      return new StoreUnavailableError(`the store did not answer a ping within ${storeTimeout} ms`)
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

function unavailable(message?: string): Answer {
  return errorAnswer(new HttpError('storeUnavailable', message))
}
