import { randomBytes } from 'node:crypto'
import type { HttpServer } from './http-server.ts'
import { StoreUnavailableError, type Store } from '../plants/store.ts'
import { isSharedStore, openStore, schemeOf } from '../stores/open-store.ts'
import { stopLookups, hasPendingLookups, waitForLookups } from '../legacy/stores/lookup.ts'
import { setTimeout, sleep } from '../legacy/timers.ts'
import { getAdminTarget, findInheritedSockets, listen, getServiceTarget } from './listen.ts'
import { describeError, getRootCauseMessage, flushLog, log } from './log.ts'
import { createProgram } from './program.ts'
import { logDroppedConnections } from './request-log.ts'
import { createTokenSource, createStoreUrlSource } from './settings/reload.ts'
import { warnAboutPermissions } from './settings/setting-file.ts'
import type { Settings } from './settings/settings.ts'
import { tokenList } from './settings/tokens.ts'
import { SettingError } from './settings/variables.ts'

/** The parts of a running server that a shutdown closes. Each part is undefined until it has started. */
type RunningService = Partial<{ store: Store; http: HttpServer }>

/**
 * Starts the standalone server, which shuts down gracefully on SIGTERM or SIGINT.
 * @throws SettingError if the server can't open the store or listen on a port
 */
export async function start(settings: Settings): Promise<void> {
  const running: RunningService = {}
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal, settings, running))
  // When the reader of the server's output exits, writes to the closed pipe emit errors. These errors must not crash
  // the server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  process.on('uncaughtException', (error) => void exitProcess('crash', 1, { reason: describeError(error) }))
  logWarnings()
  // Without this listener, SIGUSR1 would open the inspector, which any local user can connect to. `node --inspect`
  // still works.
  process.on('SIGUSR1', () => undefined)

  // Diagnostic reports include the environment, and would reveal the tokens and the database password.
  delete process.env['PLANT_STORE_TOKENS']
  delete process.env['PLANT_STORE_URL']
  const systemdSockets = findInheritedSockets(process.env)
  const demoToken = randomBytes(24).toString('base64url')
  const configuredTokens = settings.tokens ?? settings.tokensFile?.value
  const tokens = configuredTokens ?? tokenList('PLANT_STORE_TOKENS').parse(`demo:${demoToken}`)!
  const { authenticate, reload } = createTokenSource(tokens, settings.tokensFile)
  const storeUrlSource = createStoreUrlSource(settings.storeUrl, settings.storeUrlFile)
  // The listener also keeps SIGHUP from ending the process when there is nothing to reload.
  process.on('SIGHUP', () => {
    reload()
    storeUrlSource.reload()
  })

  const scheme = schemeOf(storeUrlSource.getCurrent())
  const store = await openConfiguredStore(storeUrlSource.getCurrent, settings, createStoreEventLogger())
  running.store = store
  const programSettings = systemdSockets.admin === undefined ? settings : { ...settings, adminPort: 0 }
  const { http, admin } = createProgram(programSettings, { store, scheme, authenticate, isDraining: () => isStopping })

  // Listen on the service port last, so that no client connects to a server that then fails to start.
  const adminUrl = admin && (await listen(admin.server, systemdSockets.admin ?? getAdminTarget(settings)))
  const url = await listen(http.server, systemdSockets.service ?? getServiceTarget(settings))
  running.http = http
  logDroppedConnections(http.server)
  for (const file of [settings.tokensFile, settings.storeUrlFile]) if (file !== undefined) warnAboutPermissions(file)
  log('start', { address: url, admin: adminUrl, store: scheme })
  process.stdout.write(`plant-store listening on ${url}\n`)
  if (configuredTokens === undefined) process.stdout.write(formatWelcomeMessage(url, demoToken, settings.page))
}

/** Logs process warnings from Node and from drivers as JSON, instead of the text that Node would print. */
function logWarnings(): void {
  // Node's own listener, which prints warnings. It's missing with `--no-warnings`.
  const defaultListener = process.listeners('warning').find(({ name }) => name === 'onWarning')
  if (defaultListener === undefined) return
  process.off('warning', defaultListener)
  process.on('warning', ({ name, message }) => log('warning', { reason: `${name}: ${message}` }))
}

/**
 * Creates the table or the SQLite file if it doesn't exist (`--migrate`).
 * @throws SettingError with exit status 1 for problems that a starting server would wait out, such as an unreachable
 * database server, and with exit status 2 for all others
 */
export async function migrate(settings: Settings): Promise<void> {
  const url = settings.storeUrlFile?.value ?? settings.storeUrl
  if (!isSharedStore(url)) {
    throw new SettingError(`${storeVariable(settings)} must be a persistent store for --migrate, not one in memory`)
  }
  // No client is waiting, so a slow connection to a distant database server gets more time.
  const storeTimeoutMs = 2.5 * settings.storeTimeoutMs
  const store = await openConfiguredStore(() => url, { ...settings, storeTimeoutMs, migrate: true })
  try {
    await store.ping?.()
  } catch (error) {
    const problem = getRootCauseMessage(error as Error)
    throw new SettingError(`cannot use the store at ${storeVariable(settings)}: ${problem}`, 1)
  }
  await store.close?.()
}

async function openConfiguredStore(
  currentUrl: () => string,
  settings: Settings,
  onEvent: OnStoreEvent = () => undefined,
) {
  try {
    return await openStore(currentUrl(), { ...settings, currentUrl, onEvent })
  } catch (error) {
    const message = `cannot open the store at ${storeVariable(settings)}: ${(error as Error).message}`
    throw new SettingError(message, error instanceof StoreUnavailableError ? 1 : 2)
  }
}

const storeVariable = ({ storeUrlFile }: Settings): string =>
  storeUrlFile === undefined ? 'PLANT_STORE_URL' : 'PLANT_STORE_URL_FILE'

type OnStoreEvent = Parameters<typeof openStore>[1]['onEvent']

function createStoreEventLogger(): OnStoreEvent {
  let lastUnreachableReason: string | undefined
  return (event, error) => {
    const reason = typeof error === 'string' ? error : describeError(error)
    // The store reports `unreachable` after every attempt, so a repeated reason is logged only once.
    if (event === 'unreachable' && reason === lastUnreachableReason) return
    if (event === 'unreachable') lastUnreachableReason = reason
    log(event, { reason })
  }
}

/** Formats commands to paste into a shell, and a link to open in a browser, for a first try with the demo token. */
function formatWelcomeMessage(url: string, token: string, hasWebUi: boolean): string {
  const isTcp = url.startsWith('http:')
  const baseUrl = isTcp ? url : 'http://localhost'
  const socketOption = isTcp ? '' : `--unix-socket ${quoteForShell(url.slice('unix:'.length))} `
  const headers = '-H "Authorization: Bearer $TOKEN"'
  // The same commands as in the README.
  const commands = [
    String.raw`-w '\n' "$URL/plants" ${headers} --json '{"id":9007199254740993,"name":"Fern"}'`,
    String.raw`-w '\n' "$URL/plants?include=id" ${headers}`,
    String.raw`-w '%{http_code}\n' -X DELETE "$URL/plants/9007199254740993" ${headers}`,
  ].map((args) => `  curl ${socketOption}${args}`)
  const lines = [
    `No tokens are configured. This demo token (owner: demo) is valid until the server stops: ${token}`,
    `Paste these lines into another terminal to set URL and TOKEN:\n\n  export URL='${baseUrl}'\n  export TOKEN='${token}'`,
    `Then create, list and delete a plant there (with curl 7.82 or later):\n\n${commands.join('\n')}`,
  ]
  if (hasWebUi && isTcp) {
    lines.push(
      `Open the web UI (this link contains the demo token, which stays in your browser's history):\n\n  ${url}/#token=${token}`,
    )
  }
  return `${lines.join('\n\n')}\n`
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

let isStopping = false

/**
 * Shuts down gracefully: waits for the drain delay, drains the server, closes the store, and exits with status 0. A
 * second signal, or the deadline, makes the process exit immediately with status 1.
 */
async function stop(signal: NodeJS.Signals, settings: Settings, running: RunningService): Promise<void> {
  const { drainDelayMs, drainTimeoutMs } = settings
  const { store, http } = running
  const countConnections = (): object => ({ connections: http?.connectionCount() })
  const exitEarly = (reason: string): Promise<void> => exitProcess('stop', 1, { reason, ...countConnections() }, signal)
  if (isStopping) return exitEarly(`received a second signal, ${signal}`)
  isStopping = true
  stopLookups()
  if (http !== undefined && drainDelayMs > 0) {
    log('drain-delay', { signal, ms: drainDelayMs })
    await sleep(drainDelayMs)
  }
  // The HTTP server enforces the same deadline by itself, but closing the store could take longer.
  setTimeout(() => void exitEarly(`the shutdown took longer than ${drainTimeoutMs} ms`), drainTimeoutMs)
  if (http !== undefined) {
    log('drain', { signal, ...countConnections() })
    await http.drain()
  }
  await store?.close?.()
  await waitForLookups()
  return exitProcess('stop', 0)
}

let isExiting = false

/**
 * Flushes the log, logs a last event, and exits.
 * @param signal sent to this process if a pending lookup would delay the exit
 */
async function exitProcess(
  event: 'crash' | 'stop',
  status: number,
  fields: object = {},
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<void> {
  if (isExiting) return
  isExiting = true
  // Lines are dropped while the log buffer is full. That must not happen to the last line.
  await flushLog()
  log(event, { exitStatus: status, ...fields }, status === 0 ? 'info' : 'error')
  await flushLog()
  if (hasPendingLookups()) {
    // `process.exit()` waits for the threads of pending DNS lookups, which take half a minute if the name servers are
    // down. The default action of a signal doesn't wait. PID 1 in a container has no default action, so it exits only
    // when the lookup ends.
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  }
  process.exit(status)
}
