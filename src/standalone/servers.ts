import { HttpError, NO_STORE } from '../http/errors.ts'
import { addFields, type HttpResponse } from '../http/respond.ts'
import type { Caller } from '../http/authentication.ts'
import { createLimitedServer, type PlantServer } from '../http-server/create-server.ts'
import { createPlantStore } from '../plant-store.ts'
import type { Store } from '../plants/store.ts'
import { createCors } from './cors.ts'
import {
  createDescription,
  createEndpointListener,
  createHealthChecks,
  createReadiness,
  reply,
  type Endpoint,
} from './endpoints.ts'
import { createThrottledLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { createFailureLog, getRequestId, logResponse } from './request-log.ts'
import type { Settings } from './settings/settings.ts'
import { readWebUi } from './web-ui-files.ts'

const PREFLIGHT: HttpResponse = { status: 204, headers: [], body: undefined }

export interface Dependencies {
  readonly store: Store
  readonly authenticate: (token: string) => Caller | undefined
  readonly isDraining: () => boolean
}

/** Creates the HTTP server of the service and, if there is an admin port, that of the health checks and metrics. */
export function createServers(
  settings: Settings,
  dependencies: Dependencies,
): { readonly service: PlantServer; readonly admin: PlantServer | undefined } {
  const { maxBodyBytes, maxLimit, storeTimeoutMs, adminPort } = settings
  const endpoints = new Map<string, Endpoint>(settings.webUi ? readWebUi() : [])
  endpoints.set('/openapi.json', createDescription())
  const metrics = adminPort === undefined ? undefined : createMetrics(endpoints)
  const store = metrics?.measureStore(dependencies.store) ?? dependencies.store
  const checkReadiness = createReadiness(store, dependencies.isDraining)
  const healthChecks = createHealthChecks(checkReadiness)
  for (const [path, endpoint] of healthChecks) endpoints.set(path, endpoint)

  const logFailure = createFailureLog()
  const onResponse = settings.accessLog ? logResponse : undefined
  const plants = createPlantStore({
    authenticate: dependencies.authenticate,
    store,
    maxBodyBytes,
    maxLimit,
    storeTimeoutMs,
    onError(error, request) {
      logFailure(error, request)
      // An unavailable store is logged now, not only at the next health check.
      void checkReadiness()
    },
    onResponse,
  })

  const cors = settings.corsOrigins && createCors(settings.corsOrigins)
  const listener = createEndpointListener(
    endpoints,
    (request, response) => {
      // If a preflight for an unknown path failed, the browser would report a CORS error instead of the 404.
      const answerPreflight = (): void => void reply(request, response, PREFLIGHT, undefined, onResponse)
      plants(request, response, cors?.isPreflight(request) === true ? answerPreflight : undefined)
    },
    onResponse,
  )
  const service = createLimitedServer(listener, { ...settings, optimizeEmptyRequests: true }, (error, request) => {
    metrics?.onRejection(error)
    onResponse?.({ request, status: error.status, error: error.error })
  })
  service.server.prependListener('request', (request, response) => {
    const fields = ['X-Request-Id', getRequestId(request)]
    addFields(response, cors === undefined ? fields : [...fields, ...cors.getFields(request)])
    metrics?.onRequest(request, response)
  })
  const logDrop = createThrottledLog('connections-dropped')
  service.server.on('drop', () => logDrop(() => ({ max: service.server.maxConnections })))
  // Make Node cache `remoteAddress`. After the connection has closed, only a cached value is available.
  if (settings.accessLog) service.server.on('connection', ({ remoteAddress }) => remoteAddress)
  if (metrics === undefined) return { service, admin: undefined }

  const getMetrics: Endpoint = () => ({
    status: 200,
    headers: ['Content-Type', 'text/plain; version=0.0.4; charset=utf-8', ...NO_STORE],
    body: metrics.format(service),
  })
  const adminListener = createEndpointListener(
    new Map([...healthChecks, ['/metrics', getMetrics]]),
    (request, response) => {
      const message = 'There is no resource at this path. The admin port has /livez, /readyz and /metrics.'
      void reply(request, response, new HttpError('pathNotFound', message))
    },
  )
  const admin = createLimitedServer(adminListener, settings)
  admin.server.prependListener('request', (request, response) => {
    addFields(response, ['X-Request-Id', getRequestId(request)])
  })
  return { service, admin }
}
