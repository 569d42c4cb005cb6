import type { Store } from '../../plants/store.ts'
import { figuresOf } from '../../stores/figures.ts'
import type { HttpServer } from '../../http-server/http-server.ts'
import { eventCounts } from '../log.ts'
import { family, formatFamilies, single, type Family } from './families.ts'
import { createProcessMetrics, readDescriptors } from './process.ts'
import { createRequestMetrics, type RequestMetrics } from './requests.ts'
import type { ResourceOf } from '../requests.ts'
import { createStoreMetrics } from './store-calls.ts'

export interface Metrics extends Omit<RequestMetrics, 'families'> {
  readonly watchStore: (store: Store) => Store
  readonly watchServer: (http: HttpServer) => void
  readonly format: (isReady: boolean) => string
}

export function createMetrics(resourceOf: ResourceOf): Metrics {
  const { families: ofRequests, ...listeners } = createRequestMetrics(resourceOf)
  const store = createStoreMetrics()
  const events = family('counter', 'plant_store_log_events_total', 'Events of the log, by name.', () => {
    return Array.from(eventCounts(), ([event, count]) => [{ event }, count])
  })
  const families: Family[] = [...ofRequests, ...store.families, ...createProcessMetrics(), events]
  return {
    ...listeners,
    watchStore(watched) {
      families.push(...figuresOf(watched).gauges.map((gauge) => single('gauge', ...gauge)))
      return store.watch(watched)
    },
    watchServer({ server, connectionCount, isGuarded }) {
      let dropped = 0
      server.on('drop', () => dropped++)
      families.push(
        single('gauge', 'plant_store_http_open_connections', 'Connections that are open.', connectionCount),
        single('gauge', 'plant_store_http_max_connections', 'Connections that may be open.', () => {
          return server.maxConnections
        }),
        single(
          'counter',
          'plant_store_http_dropped_connections_total',
          'Connections closed at once because the maximum was open.',
          () => dropped,
        ),
        single(
          'gauge',
          'plant_store_http_guarded',
          'Whether all connections are read in slices, as a client has sent too much in small pieces.',
          isGuarded,
        ),
      )
    },
    format(isReady) {
      const ready = single('gauge', 'plant_store_ready', 'Whether /readyz says 200.', () => isReady)
      return formatFamilies([...families, ...readDescriptors(), ready])
    },
  }
}
