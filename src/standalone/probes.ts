import { HttpError } from '../http/errors.ts'
import { errorResponse, jsonResponse, type HttpResponse } from '../http/response.ts'
import { withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { StoreUnavailableError, type Store } from '../plants/store.ts'
import { describeError, log } from './log.ts'

/** What the probes look at. */
export interface ProbeOptions {
  readonly store: Store
  /** How long a ping of the store may take. */
  readonly storeTimeoutMs: number
  readonly isDraining: () => boolean
}

/** Makes the response to a probe. */
export type Probe = () => MaybePromise<HttpResponse>

const LIVE = jsonResponse(200, [], { status: 'live' })
const READY = jsonResponse(200, [], { status: 'ready' })

/** Makes the probes by their paths: whether the program lives, and whether it can serve. */
export function createProbes(options: ProbeOptions): Readonly<Record<'/livez' | '/readyz', Probe>> {
  const isReady = shareCalls(() => askStore(options))

  return {
    '/livez': () => LIVE,
    async '/readyz'() {
      if (options.isDraining()) return unavailable('The service is shutting down.')
      return (await isReady()) ? READY : unavailable()
    },
  }
}

async function askStore({ store, storeTimeoutMs }: ProbeOptions): Promise<boolean> {
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

/** Lets all who ask during a call share it: nobody needs a token to ask, and each call is work. */
function shareCalls<T>(call: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined
  return () => (pending ??= call().finally(() => (pending = undefined)))
}

function unavailable(message?: string): HttpResponse {
  return errorResponse(new HttpError('storeUnavailable', message))
}
