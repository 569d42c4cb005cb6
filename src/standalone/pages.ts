import type { IncomingMessage, RequestListener } from 'node:http'
import { withDeadline } from '../deadline.ts'
import { HttpError } from '../http/errors.ts'
import { errorAnswer, respond, type Answer } from '../http/respond.ts'
import { openapi } from '../openapi.ts'
import { StoreUnavailableError, type Store } from '../store.ts'
import { describeError, log } from './log.ts'

interface PageOptions {
  readonly store: Store
  readonly storeTimeout: number
  readonly isDraining: () => boolean
}

const ALLOW = 'GET, HEAD, OPTIONS'

/**
 * Makes the listener for the pages of the program itself, none of which needs a token: does it live, is it ready, what
 * is its interface?
 * @param notFound answers where there is no such page
 */
export function createPages(options: PageOptions, notFound: RequestListener): RequestListener {
  const isReady = shareCalls(() => askStore(options))
  const pages = new Map<string, () => Answer | Promise<Answer>>([
    ['/livez', () => jsonAnswer({ status: 'live' })],
    ['/readyz', async () => {
      if (options.isDraining()) return errorAnswer(new HttpError('storeUnavailable', 'The service is shutting down.'))
      return (await isReady()) ? jsonAnswer({ status: 'ready' }) : errorAnswer(new HttpError('storeUnavailable'))
    }],
    ['/openapi.json', () => jsonAnswer(openapi)],
  ])

  async function answer(method: IncomingMessage['method'], page: () => Answer | Promise<Answer>): Promise<Answer> {
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

  return function answerPage(request, response) {
    const page = pages.get(request.url!.replace(/\?.*$/s, ''))
    if (page === undefined) notFound(request, response)
    else void answer(request.method, page).then((answer) => respond(request, response, answer))
  }
}

async function askStore({ store, storeTimeout }: PageOptions): Promise<boolean> {
  const tooLate = (): Error => new StoreUnavailableError(`the store did not answer a ping within ${storeTimeout} ms`)
  try {
    await withDeadline(store.ping?.(), storeTimeout, tooLate)
    return true
  } catch (error) {
    log('unready', { reason: describeError(error) })
    return false
  }
}

/** Lets those who ask during a call share it: nobody needs a token to ask, and each call is work for the store. */
function shareCalls<T>(call: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined
  return () => (pending ??= call().finally(() => (pending = undefined)))
}

function jsonAnswer(value: unknown): Answer {
  return { status: 200, headers: [], body: JSON.stringify(value) }
}
