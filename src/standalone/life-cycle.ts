import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPlantStore } from '../plant-store.ts'
import type { Store } from '../plants/store.ts'
import { openStore, schemeOf } from '../stores/open-store.ts'
import { createAdminListener } from './admin.ts'
import { reachableHost, urlOf } from './address.ts'
import { createCommonFields } from './common-fields.ts'
import { createCors } from './cors.ts'
import type { Settings } from './settings.ts'
import { createHttpServer, type HttpServer } from './http-server.ts'
import { describeError, flushLog, log } from './log.ts'
import { createMetrics } from './metrics/metrics.ts'
import { pageDocuments } from './page/documents.ts'
import { createProgramPaths } from './program-paths.ts'
import { createReports, reportRefusal } from './reports.ts'
import { createRoutes } from './routes.ts'
import { createTokenSource } from './token-rotation.ts'
import { singleToken } from './tokens.ts'
import { reportTurnedAway } from './turned-away.ts'
import { SettingError } from './variables.ts'

/**
 * Starts the service, which from then on stops at SIGTERM or SIGINT.
 * @throws SettingError if the store cannot be opened, or the service cannot listen
 */
export async function start(settings: Settings): Promise<void> {
  // Without this listener, Node would open its inspector to every user of the machine; `node --inspect` still does.
  process.on('SIGUSR1', () => undefined)
  const { storeTimeoutMs, maxBodyBytes, maxLimit, accessLog, slowMs } = settings
  const demoToken = randomBytes(24).toString('base64url')
  const tokens = settings.tokens ?? settings.tokensFile?.tokens
  const authenticate = createTokenSource(tokens ?? singleToken(demoToken, 'demo'), settings.tokensFile)
  const storeUrl = settings.storeUrlFile ?? settings.storeUrl
  const documents = settings.page ? pageDocuments(schemeOf(storeUrl)) : new Map()
  const routes = createRoutes([...documents.keys()])
  const { adminPort, corsOrigins } = settings
  const metrics = adminPort === undefined ? undefined : createMetrics(routes)
  const opened = await open(storeUrl, settings)
  const store = metrics?.watchStore(opened) ?? opened
  const plants = createPlantStore({
    authenticate,
    store,
    storeTimeoutMs,
    maxBodyBytes,
    ...(maxLimit === undefined ? {} : { maxLimit }),
    ...createReports(accessLog, slowMs),
  })
  const stopping = new AbortController()
  const probes = { store, storeTimeoutMs, isDraining: () => stopping.signal.aborted }
  const programPaths = createProgramPaths({ ...probes, documents }, plants)
  const http = createHttpServer(
    (request, response) => plants(request, response, () => programPaths(request, response)),
    settings,
    createCommonFields(corsOrigins && createCors(corsOrigins, routes)),
    {
      onRequest: metrics?.observer.onRequest,
      onRefusal(error, request) {
        metrics?.observer.onRefusal(error, request)
        if (accessLog) reportRefusal(error, request)
      },
    },
  )

  // Whoever reads the output may stop. That must not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  const url = await listen(http, settings, ['HOST', 'PORT'])
  const admin = metrics && (await serveAdmin(createAdminListener(probes, metrics), adminPort!, settings))
  metrics?.watchServer(http)
  reportTurnedAway(http.server)
  stopAtSignal(stopping, http, store, settings)
  log('start', { url, admin, store: schemeOf(storeUrl) })
  process.stdout.write(`plant-store listening on ${url}\n`)
  if (tokens === undefined) process.stdout.write(invitation(url, demoToken, settings.page))
}

async function open(storeUrl: string, settings: Settings): Promise<Store> {
  try {
    return await openStore(storeUrl, {
      ...settings,
      onEvent: (event, reason) => log(event, { reason: typeof reason === 'string' ? reason : describeError(reason) }),
    })
  } catch (cause) {
    const problem = `names a store that cannot be opened: ${explain(cause as Error)}`
    throw new SettingError('PLANT_STORE_URL', problem, { cause })
  }
}

/** The message of a store's error. The message of the driver's error behind it follows, if it says more. */
function explain({ message, cause }: Error): string {
  return cause instanceof Error && !message.includes(cause.message) ? `${message} ${cause.message}` : message
}

async function serveAdmin(listener: RequestListener, port: number, settings: Settings): Promise<string> {
  const host = settings.adminHost ?? settings.host
  const http = createHttpServer(listener, settings, createCommonFields())
  return listen(http, { host, port }, ['PLANT_STORE_ADMIN_HOST', 'PLANT_STORE_ADMIN_PORT'])
}

/** @param variables the names of those that say where */
async function listen(
  { server }: HttpServer,
  { host, port }: Pick<Settings, 'host' | 'port'>,
  variables: readonly [host: string, port: string],
): Promise<string> {
  try {
    await once(server.listen({ host, port }), 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const isPort = code === 'EADDRINUSE' || code === 'EACCES'
    throw isPort
      ? new SettingError(variables[1], `takes a port that is free on ${variables[0]}; ${port} is not (${code})`, {
          cause,
        })
      : new SettingError(variables[0], `takes an address of this machine, and this is not one (${code})`, { cause })
  }
  const { address, port: realPort } = server.address() as AddressInfo
  // The host is a name that people chose, unless it stands for all addresses.
  return urlOf(reachableHost(address) === address ? host : address, realPort)
}

function invitation(url: string, token: string, hasPage: boolean): string {
  const headers = `-H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json'`
  const plant = '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'
  const curl = `The token of the owner demo is ${token}\n\n  curl '${url}/plants' ${headers} -d '${plant}'\n`
  return hasPage ? `${curl}\nOr open the page, which takes the token along:\n\n  ${url}/#token=${token}\n` : curl
}

/**
 * At the first signal, `/readyz` begins to say that the service is not ready. After the delay the service answers the
 * requests that are in flight or still arrive, closes the store, and ends the process with status 0. At a second
 * signal, or when the time for the drain is over, it cuts what is left and ends the process with status 1.
 * @param stopping is aborted at the first signal
 */
function stopAtSignal(stopping: AbortController, http: HttpServer, store: Store, settings: Settings): void {
  const { drainDelayMs, drainTimeoutMs } = settings
  let isEnding = false
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)

  function onSignal(signal: NodeJS.Signals): void {
    if (stopping.signal.aborted) {
      cut(`a second signal, ${signal}`)
    } else {
      stopping.abort()
      if (drainDelayMs > 0) log('drain-delay', { signal, ms: drainDelayMs })
      setTimeout(() => void drain(signal), drainDelayMs)
    }
  }

  async function drain(signal: NodeJS.Signals): Promise<void> {
    log('drain', { signal, connections: http.connectionCount() })
    setTimeout(() => cut(`${drainTimeoutMs} ms were not enough`), drainTimeoutMs)
    await http.drain()
    await store.close?.()
    await end(0)
  }

  function cut(reason: string): void {
    void end(1, { reason, connections: http.connectionCount() })
  }

  async function end(status: number, fields: object = {}): Promise<void> {
    if (isEnding) return
    isEnding = true
    // Otherwise the last line could be dropped.
    await flushLog()
    log('stop', { status, ...fields })
    await flushLog()
    process.exit(status)
  }
}
