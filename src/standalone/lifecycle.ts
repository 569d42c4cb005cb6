import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createPlantStore } from '../plant-store.ts'
import type { Store } from '../store.ts'
import type { Settings } from './config.ts'
import { createHttpServer, type HttpServer } from './http-server.ts'
import { log } from './log.ts'
import { createPages } from './pages.ts'
import { createReports } from './reports.ts'
import { openStore } from './stores.ts'
import { SettingError } from './variables.ts'

/**
 * Starts the service, which from then on stops at SIGTERM or SIGINT.
 * @throws SettingError where the store cannot be opened, or the service cannot listen
 */
export async function start(settings: Settings): Promise<void> {
  const { storeUrl, storeTimeout, maxBodyBytes, maxLimit, accessLog, drainTimeout } = settings
  const demoToken = randomBytes(24).toString('base64url')
  const tokens = settings.tokens ?? settings.tokensFile
  const store = await openStore(storeUrl)
  const plants = createPlantStore({
    tokens: tokens ?? { [demoToken]: 'demo' },
    store,
    storeTimeoutMs: storeTimeout,
    maxBodyBytes,
    ...(maxLimit === undefined ? {} : { maxLimit }),
    ...createReports(accessLog),
  })
  const pages = createPages({ store, storeTimeout, isDraining: () => http.isDraining() }, plants)
  const http = createHttpServer((request, response) => {
    plants(request, response, () => pages(request, response))
  }, settings)

  // Whoever reads the output may go: that must not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  const url = await listen(http, settings)
  stopAtSignal(http, store, drainTimeout)
  log('start', { url, store: storeUrl.slice(0, storeUrl.indexOf(':')) })
  process.stdout.write(`plant-store listening on ${url}\n`)
  if (tokens === undefined) process.stdout.write(invitation(url, demoToken))
}

async function listen({ server }: HttpServer, { host, port }: Settings): Promise<string> {
  try {
    await once(server.listen({ host, port }), 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const isPort = code === 'EADDRINUSE' || code === 'EACCES'
    throw isPort
      ? new SettingError('PORT', `takes a port that is free on HOST; ${port} is not (${code})`, { cause })
      : new SettingError('HOST', `takes an address of this machine; this is none (${code})`, { cause })
  }
  const shownHost = host.includes(':') ? `[${host}]` : host
  return `http://${shownHost}:${(server.address() as AddressInfo).port}`
}

function invitation(url: string, token: string): string {
  const headers = `-H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json'`
  const plant = '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'
  return `The token of the owner demo is ${token}\n\n  curl '${url}/plants' ${headers} -d '${plant}'\n`
}

/**
 * At the first signal answers what is in flight or still arrives, closes the store, and lets the process end
 * by itself, with status 0. At a second one, or when the time is over, cuts what is left and ends it with
 * status 1.
 */
function stopAtSignal(http: HttpServer, store: Store, drainTimeout: number): void {
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)

  function onSignal(signal: NodeJS.Signals): void {
    if (http.isDraining()) {
      cut(`a second signal, ${signal}`)
    } else {
      log('drain', { signal, connections: http.connectionCount() })
      setTimeout(() => cut(`${drainTimeout} ms were not enough`), drainTimeout).unref()
      // A proxy may keep a connection for minutes that waits for a request; nothing is lost with it.
      setTimeout(() => http.server.closeIdleConnections(), 0.9 * drainTimeout).unref()
      void drain()
    }
  }

  async function drain(): Promise<void> {
    await http.drain()
    await store.close?.()
    log('stop', { status: 0 })
  }

  function cut(reason: string): void {
    log('stop', { status: 1, reason, connections: http.connectionCount() })
    process.exit(1)
  }
}
