import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { digestToken } from '../http/authentication.ts'
import type { PlantServer } from '../http-server/create-server.ts'
import { isUnavailable, type Store } from '../plants/store.ts'
import { openStore, schemeOf, type StoreSettings } from '../stores/open-store.ts'
import { listen, listenOnAdminPort, type Listening } from './listen.ts'
import { describeError, flushLog, getRootCauseMessage, log, type LogEvent } from './log.ts'
import { createServers } from './servers.ts'
import type { Settings } from './settings/settings.ts'
import { parseTokenList } from './settings/tokens.ts'
import { SettingError } from './settings/variables.ts'

type OnStoreEvent = StoreSettings['onEvent']

/** A SIGINT within this time of the first one repeats it. */
const REPEATED_SIGINT_MS = 1000

let isDraining = false

/**
 * Starts the standalone server, which shuts down gracefully on SIGTERM or SIGINT.
 * @throws SettingError if the server can't open the store or listen on a port
 */
export async function start(settings: Settings): Promise<void> {
  process.on('uncaughtException', (error) => void exit('crash', 1, { reason: describeError(error) }))
  // Each line of the log is JSON, so warnings from Node and from drivers are, too.
  process.removeAllListeners('warning').on('warning', ({ name, message }) => {
    // Node 22 warns that SQLite is experimental.
    if (name !== 'ExperimentalWarning') log('warning', { reason: `${name}: ${message}` })
  })

  const demoToken = randomBytes(24).toString('base64url')
  const demoTokens = parseTokenList('', `demo:${demoToken}`)
  const authenticate = (token: string) => (settings.tokens?.current() ?? demoTokens).get(digestToken(token))
  process.on('SIGHUP', () => {
    settings.tokens?.reload()
    settings.storeUrl.reload()
  })

  const scheme = schemeOf(settings.storeUrl.current())!
  const store = await openSettingsStore(settings, logStoreEvent)
  const { service, admin } = createServers(settings, { store, authenticate, isDraining: () => isDraining })
  // Listen on the service port last, so that no client connects to a server that then fails to start.
  const adminAddress = admin && (await listenOnAdminPort(admin.server, settings))
  const address = await listen(service.server, settings, process.env)
  listenForStopSignals(settings, service, store)

  log('start', { address: address.description, admin: adminAddress?.description, store: scheme })
  process.stdout.write(`plant-store listening on ${address.description}\n`)
  if (settings.tokens === undefined) process.stdout.write(formatWelcome(address, demoToken, settings.webUi))
}

/** Formats lines to paste into a shell, the same as in the README, and a link to open in a browser. */
function formatWelcome({ url, curlOption }: Listening, token: string, hasWebUi: boolean): string {
  const note = `No tokens are configured. This demo token (owner: demo) is valid until the server stops: ${token}\n`
  if (url === undefined) return note
  const header = '-H "Authorization: Bearer $TOKEN"'
  const commands = `
Paste these lines into another terminal to set URL and TOKEN:

  export URL='${url}'
  export TOKEN='${token}'

Then create, list and delete a plant there (with curl 7.82 or later):

  curl ${curlOption}-w '\\n' "$URL/plants" ${header} --json '{"id":9007199254740993,"name":"Fern"}'
  curl ${curlOption}-w '\\n' "$URL/plants?include=id" ${header}
  curl ${curlOption}-w '%{http_code}\\n' -X DELETE "$URL/plants/9007199254740993" ${header}
`
  if (!hasWebUi || curlOption !== '') return note + commands
  return `${note}${commands}
Open the web UI (this link contains the demo token, which stays in your browser's history):

  ${url}/#token=${token}
`
}

/**
 * Creates the table or the SQLite file if it doesn't exist (`--migrate`).
 * @throws SettingError with exit status 1 for problems that a starting server would wait out, such as an unreachable
 * database server, and with exit status 2 for all others
 */
export async function migrate(settings: Settings): Promise<void> {
  const { variable, current } = settings.storeUrl
  if (schemeOf(current()) === 'memory') throw new SettingError(`${variable} must not be memory: for --migrate`)
  const store = await openSettingsStore({ ...settings, migrate: true }, () => undefined)
  try {
    await store.ping?.()
  } catch (error) {
    throw new SettingError(`cannot use the store at ${variable}: ${getRootCauseMessage(error as Error)}`, 1)
  }
  await store.close?.()
}

async function openSettingsStore(settings: Settings, onEvent: OnStoreEvent): Promise<Store> {
  const { variable, current } = settings.storeUrl
  try {
    return await openStore(current(), { ...settings, currentUrl: current, onEvent })
  } catch (error) {
    const message = `cannot open the store at ${variable}: ${getRootCauseMessage(error as Error)}`
    throw new SettingError(message, isUnavailable(error) ? 1 : 2)
  }
}

/** The stack of the error would describe only the driver. */
const logStoreEvent: OnStoreEvent = (event, reason) =>
  log(event as LogEvent, { reason: typeof reason === 'string' ? reason : getRootCauseMessage(reason as Error) })

function listenForStopSignals(settings: Settings, service: PlantServer, store: Store): void {
  let repeatedUntil = 0
  function onSignal(signal: NodeJS.Signals): void {
    const now = performance.now()
    if (!isDraining) {
      if (signal === 'SIGINT') repeatedUntil = now + REPEATED_SIGINT_MS
      return void stop(signal, settings, service, store)
    }
    // On Ctrl-C, the terminal signals the whole process group, and npm, nodemon or concurrently then repeat the signal.
    if (signal === 'SIGINT' && now < repeatedUntil) return
    void exit('stop', 1, { reason: `received a second signal, ${signal}`, connections: service.connectionCount() })
  }
  process.removeAllListeners('SIGTERM').removeAllListeners('SIGINT')
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
}

/** Shuts down gracefully. The exit status is 1 if that takes longer than the drain timeout. */
async function stop(signal: NodeJS.Signals, settings: Settings, service: PlantServer, store: Store): Promise<void> {
  const { drainDelayMs, drainTimeoutMs } = settings
  isDraining = true
  if (drainDelayMs > 0) {
    log('drain-delay', { signal, ms: drainDelayMs })
    await sleep(drainDelayMs)
  }
  log('drain', { signal, connections: service.connectionCount() })
  const late = { reason: `the shutdown took longer than ${drainTimeoutMs} ms` }
  setTimeout(() => void exit('stop', 1, { ...late, connections: service.connectionCount() }), drainTimeoutMs)
  const destroyed = await service.drain()
  await store.close?.()
  return destroyed === 0 ? exit('stop', 0) : exit('stop', 1, { ...late, connections: destroyed })
}

let isExiting = false

async function exit(event: 'crash' | 'stop', status: 0 | 1, fields: object = {}): Promise<void> {
  if (isExiting) return
  isExiting = true
  // Lines are dropped while the log buffer is full. That must not happen to the last line.
  await flushLog()
  log(event, { exitStatus: status, ...fields }, status === 0 ? 'info' : 'error')
  await flushLog()
  process.exit(status)
}
