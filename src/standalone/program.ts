import { createHttpServer, type GetCommonFields, type HttpServer, type Observer } from './http-server.ts'
import type { FindCaller } from '../http/caller.ts'
import type { Resource } from '../http/router.ts'
import type { ResourcePath } from '../operations.ts'
import { resolveOptions } from '../options.ts'
import { createService } from '../plant-store.ts'
import type { Store } from '../plants/store.ts'
import { createCors } from './cors.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createWebUiAssets } from './paths/page/assets.ts'
import { programDescription } from './paths/program-description.ts'
import { createAdminListener, createProgramListener } from './paths/program-listener.ts'
import { createReadiness } from './paths/readiness.ts'
import { createRequestLog } from './request-log.ts'
import { createProgramRouter, getRequestId } from './requests.ts'
import type { Settings } from './settings/settings.ts'

const getRequestIdField: GetCommonFields = (request) => ['X-Request-Id', getRequestId(request)]

/** Creates the HTTP servers for the service and, if there is an admin port, for the health checks and the metrics. */
export function createProgram(
  settings: Settings,
  dependencies: { store: Store; scheme: string; authenticate: FindCaller; isDraining: () => boolean },
): { readonly http: HttpServer; readonly admin: HttpServer | undefined } {
  const { storeTimeoutMs, maxBodyBytes, maxLimit, maxListsPerOwner, corsOrigins, adminPort } = settings
  const { scheme, authenticate, isDraining } = dependencies
  const webUiAssets = settings.page ? createWebUiAssets(scheme) : new Map()
  const findResource = createProgramRouter([...Object.keys(programDescription.paths), ...webUiAssets.keys()])
  const metrics = adminPort === undefined ? undefined : createMetrics(findResource)
  const store = metrics?.instrumentStore(dependencies.store) ?? dependencies.store

  const { onError, onResponse, onRejection } = createRequestLog(settings.accessLog, settings.slowMs)
  /** Logs a failure, and checks readiness, so that an unavailable store is logged before the next health check. */
  const handleError: typeof onError = (error, request) => {
    onError?.(error, request)
    void checkReadiness()
  }
  const limits = { storeTimeoutMs, maxBodyBytes, maxLimit, maxListsPerOwner }
  const checkReadiness = createReadiness(store, isDraining)
  const options = resolveOptions({ authenticate, store, ...limits, onError: handleError, onResponse })
  // Callers were validated when the tokens were read, so `findCaller` doesn't have to validate what `authenticate`
  // returns.
  const plantListener = createService({ ...options, findCaller: authenticate })
  const programListener = createProgramListener(
    { checkReadiness, documents: webUiAssets, onResponse },
    findResource,
    (request, response) => {
      plantListener(request, response, findResource(request) as Resource<ResourcePath> | undefined)
    },
  )
  const observer: Observer = {
    onRequest: metrics?.onRequest,
    onRejection(error, request) {
      metrics?.onRejection(error)
      onRejection?.(error, request)
    },
  }
  const cors = corsOrigins && createCors(corsOrigins, findResource, onResponse)
  const http = createHttpServer(
    cors?.handlePreflights(programListener) ?? programListener,
    { ...settings, optimizeEmptyRequests: true },
    cors === undefined ? getRequestIdField : (request) => [...getRequestIdField(request), ...cors.getFields(request)],
    observer,
  )
  // Make Node cache `remoteAddress`. After the connection has closed, only a cached value is available.
  if (onResponse !== undefined) http.server.on('connection', ({ remoteAddress }) => remoteAddress)
  if (metrics === undefined) return { http, admin: undefined }
  metrics.instrumentServer(http)
  const admin = createHttpServer(createAdminListener(checkReadiness, metrics.format), settings, getRequestIdField)
  return { http, admin }
}
