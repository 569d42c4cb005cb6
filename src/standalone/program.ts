import { createHttpServer, type CommonFields, type HttpServer, type Observer } from '../http-server/http-server.ts'
import type { FindCaller } from '../http/caller.ts'
import type { Resource } from '../http/route.ts'
import type { ResourcePath } from '../operations.ts'
import { resolveOptions } from '../options.ts'
import { createService } from '../plant-store.ts'
import type { Store } from '../plants/store.ts'
import { createCors } from './cors.ts'
import { log } from './log.ts'
import { createMetrics } from './metrics/metrics.ts'
import { pageAssets } from './paths/page/assets.ts'
import { programDescription } from './paths/program-description.ts'
import { createAdminListener, createProgramPaths } from './paths/program-paths.ts'
import { createReadiness } from './paths/readiness.ts'
import { createReports } from './reports.ts'
import { createResources, idOf } from './requests.ts'
import type { Settings } from './settings/settings.ts'

const nameRequest: CommonFields = (request) => ['X-Request-Id', idOf(request)]

export function createProgram(
  settings: Settings,
  parts: { store: Store; scheme: string; authenticate: FindCaller; isDraining: () => boolean },
): { readonly http: HttpServer; readonly admin: HttpServer | undefined } {
  const { storeTimeoutMs, maxBodyBytes, maxLimit, maxListsPerOwner, corsOrigins, adminPort } = settings
  const { scheme, authenticate, isDraining } = parts
  const documents = settings.page ? pageAssets(scheme) : new Map()
  const resourceOf = createResources([...Object.keys(programDescription.paths), ...documents.keys()])
  const metrics = adminPort === undefined ? undefined : createMetrics(resourceOf)
  const store = metrics?.watchStore(parts.store) ?? parts.store

  const { onError, onResponse, onRefusal } = createReports(settings.accessLog, settings.slowMs)
  /** Logs a failure. If the store is the reason, the log says so too, without waiting for a health check. */
  const checkStore: typeof onError = (error, request) => {
    onError?.(error, request)
    void readiness()
  }
  const limits = { storeTimeoutMs, maxBodyBytes, maxLimit, maxListsPerOwner }
  const readiness = createReadiness(store, isDraining)
  const options = resolveOptions({ authenticate, store, ...limits, onError: checkStore, onResponse })
  // What it finds was checked as the program took the tokens.
  const plants = createService({ ...options, findCaller: authenticate })
  const serve = createProgramPaths({ readiness, documents, onAnswer: onResponse }, resourceOf, (request, response) => {
    plants(request, response, resourceOf(request) as Resource<ResourcePath> | undefined)
  })
  const observer: Observer = {
    onRequest: metrics?.onRequest,
    onRefusal(error, request) {
      metrics?.onRefusal(error)
      onRefusal?.(error, request)
    },
    onAnswer: onResponse,
    onGuard: (isAwake) => log('guard', { isAwake }),
  }
  const cors = corsOrigins && createCors(corsOrigins, resourceOf, onResponse)
  const http = createHttpServer(
    cors?.answerPreflights(serve) ?? serve,
    { ...settings, optimizeEmptyRequests: true },
    cors === undefined ? nameRequest : (request) => [...nameRequest(request), ...cors.fields(request)],
    observer,
  )
  // Node tells the address of a connection that has closed only if it was asked before.
  if (onResponse !== undefined) http.server.on('connection', ({ remoteAddress }) => remoteAddress)
  if (metrics === undefined) return { http, admin: undefined }
  metrics.watchServer(http)
  const admin = createHttpServer(createAdminListener(readiness, metrics.format), settings, nameRequest)
  return { http, admin }
}
