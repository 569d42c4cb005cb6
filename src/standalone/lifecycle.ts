import { randomBytes } from 'node:crypto'
import type { HttpServer } from '../http-server/http-server.ts'
import { StoreUnavailableError, type Store } from '../plants/store.ts'
import { isSharedStore, openStore, schemeOf } from '../stores/open-store.ts'
import { stopLookups, hasPendingLookups, waitForLookups } from '../stores/lookup.ts'
import { setTimeout, sleep } from '../timers.ts'
import { getAdminTarget, findInheritedSockets, listen, getServiceTarget } from './listen.ts'
import { describeError, getRootCauseMessage, flushLog, log } from './log.ts'
import { createProgram } from './program.ts'
import { logDroppedConnections } from './request-log.ts'
import { createTokenSource, createStoreUrlSource } from './settings/reload.ts'
import { warnAboutPermissions } from './settings/setting-file.ts'
import type { Settings } from './settings/settings.ts'
import { tokenList } from './settings/tokens.ts'
import { SettingError } from './settings/variables.ts'

/** What a stop has to end. */
type RunningService = Partial<{ store: Store; http: HttpServer; isPortShared: boolean }>

/** Starts the service, which stops at SIGTERM or SIGINT. @throws SettingError if the store or a port cannot be had */
export async function start(settings: Settings): Promise<void> {
  const running: RunningService = {}
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal, settings, running))
  // The reader of the output may stop. That must not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  process.on('uncaughtException', (error) => void exitProcess('crash', 1, { reason: describeError(error) }))
  logWarnings()
  // Without this listener, Node would open its inspector to every user of the machine; `node --inspect` still does.
  process.on('SIGUSR1', () => undefined)

  // Otherwise diagnostic reports would contain the tokens, and the password of the database.
  delete process.env['PLANT_STORE_TOKENS']
  delete process.env['PLANT_STORE_URL']
  const systemdSockets = findInheritedSockets(process.env)
  const demoToken = randomBytes(24).toString('base64url')
  const configuredTokens = settings.tokens ?? settings.tokensFile?.value
  const tokens = configuredTokens ?? tokenList('PLANT_STORE_TOKENS').parse(`demo:${demoToken}`)!
  const { authenticate, reload } = createTokenSource(tokens, settings.tokensFile)
  const storeUrlSource = createStoreUrlSource(settings.storeUrl, settings.storeUrlFile)
  // With this listener it does not end the process, whether or not there is something to read again.
  process.on('SIGHUP', () => {
    reload()
    storeUrlSource.reload()
  })

  const scheme = schemeOf(storeUrlSource.getCurrent())
  const store = await openConfiguredStore(storeUrlSource.getCurrent, settings, createStoreEventLogger())
  running.store = store
  const programSettings = systemdSockets.admin === undefined ? settings : { ...settings, adminPort: 0 }
  const { http, admin } = createProgram(programSettings, { store, scheme, authenticate, isDraining: () => isStopping })

  // Clients must not get a connection to a program that then cannot start.
  const adminUrl = admin && (await listen(admin.server, systemdSockets.admin ?? getAdminTarget(settings)))
  const url = await listen(http.server, systemdSockets.service ?? getServiceTarget(settings))
  Object.assign(running, { http, isPortShared: settings.reusePort || systemdSockets.service !== undefined })
  logDroppedConnections(http.server)
  for (const file of [settings.tokensFile, settings.storeUrlFile]) if (file !== undefined) warnAboutPermissions(file)
  log('start', { address: url, admin: adminUrl, store: scheme })
  process.stdout.write(`plant-store listening on ${url}\n`)
  if (configuredTokens === undefined) process.stdout.write(formatWelcomeMessage(url, demoToken, settings.page))
}

/** Logs the warnings of Node and of drivers as JSON, instead of the text that Node prints. */
function logWarnings(): void {
  // Node prints warnings in this listener, which is absent with `--no-warnings`.
  const defaultListener = process.listeners('warning').find(({ name }) => name === 'onWarning')
  if (defaultListener === undefined) return
  process.off('warning', defaultListener)
  process.on('warning', ({ name, message }) => log('warning', { reason: `${name}: ${message}` }))
}

/** @throws SettingError, with status 1 if the program would wait until the table or the file can be made */
export async function migrate(settings: Settings): Promise<void> {
  const url = settings.storeUrlFile?.value ?? settings.storeUrl
  if (!isSharedStore(url)) throw createStoreError(settings, 'takes for --migrate a store that outlives the program', 2)
  // No client waits for a response, so connecting to a far server can take longer.
  const storeTimeoutMs = 2.5 * settings.storeTimeoutMs
  const store = await openConfiguredStore(() => url, { ...settings, storeTimeoutMs, migrate: true })
  try {
    await store.ping?.()
  } catch (error) {
    throw createStoreError(settings, `names a store that cannot be used: ${getRootCauseMessage(error as Error)}`, 1)
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
    const problem = `names a store that cannot be opened: ${(error as Error).message}`
    throw createStoreError(settings, problem, error instanceof StoreUnavailableError ? 1 : 2)
  }
}

function createStoreError({ storeUrlFile }: Settings, problem: string, exitStatus: 1 | 2): SettingError {
  return new SettingError(storeUrlFile === undefined ? 'PLANT_STORE_URL' : 'PLANT_STORE_URL_FILE', problem, exitStatus)
}

type OnStoreEvent = Parameters<typeof openStore>[1]['onEvent']

function createStoreEventLogger(): OnStoreEvent {
  let lastUnreachableReason: string | undefined
  return (event, error) => {
    const reason = typeof error === 'string' ? error : describeError(error)
    // The store says so at each try.
    if (event === 'unreachable' && reason === lastUnreachableReason) return
    if (event === 'unreachable') lastUnreachableReason = reason
    log(event, { reason })
  }
}

/** What a user can paste into a shell, and open in a browser, to try the service with the token. */
function formatWelcomeMessage(url: string, token: string, hasWebUi: boolean): string {
  const headers = `-H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json'`
  const plant = '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'
  const isTcp = url.startsWith('http:')
  const baseUrl = isTcp ? url : 'http://localhost'
  const socketOption = isTcp ? '' : `--unix-socket ${quoteForShell(url.slice('unix:'.length))} `
  const lines = [
    `The token of the owner demo is ${token}`,
    `Set URL and TOKEN in your shell:\n\n  export URL='${baseUrl}'\n  export TOKEN='${token}'`,
    `Create a plant:\n\n  curl ${socketOption}'${baseUrl}/plants' ${headers} -d '${plant}'`,
  ]
  if (hasWebUi && isTcp) {
    lines.push(
      `Open the web UI with this demo token, which stays in your browser's history:\n\n  ${url}/#token=${token}`,
    )
  }
  return `${lines.join('\n\n')}\n`
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

let isStopping = false

/** Drains after the delay, closes the store, and ends. A second signal, or the deadline, ends with status 1 at once. */
async function stop(signal: NodeJS.Signals, settings: Settings, running: RunningService): Promise<void> {
  const { drainDelayMs, drainTimeoutMs } = settings
  const { store, http, isPortShared } = running
  const countConnections = (): object => ({ connections: http?.connectionCount() })
  const exitEarly = (reason: string): Promise<void> => exitProcess('stop', 1, { reason, ...countConnections() }, signal)
  if (isStopping) return exitEarly(`a second signal, ${signal}`)
  isStopping = true
  stopLookups()
  if (http !== undefined && drainDelayMs > 0) {
    log('drain-delay', { signal, ms: drainDelayMs })
    await sleep(drainDelayMs)
  }
  // The server keeps to this time, but the store may not.
  setTimeout(() => void exitEarly(`${drainTimeoutMs} ms were not enough`), drainTimeoutMs)
  if (http !== undefined) {
    log('drain', { signal, ...countConnections() })
    await http.drain(isPortShared)
  }
  await store?.close?.()
  await waitForLookups()
  return exitProcess('stop', 0)
}

let isExiting = false

/**
 * Logs why the process ends, after all lines that wait, and ends it.
 * @param signal ends the process if it can't exit by itself soon
 */
async function exitProcess(
  event: 'crash' | 'stop',
  status: number,
  fields: object = {},
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<void> {
  if (isExiting) return
  isExiting = true
  // Otherwise the last line could be dropped.
  await flushLog()
  log(event, { exitStatus: status, ...fields }, status === 0 ? 'info' : 'error')
  await flushLog()
  if (hasPendingLookups()) {
    // `process.exit()` waits for the thread of a lookup, and name servers that are down take half a minute. The default
    // action of a signal doesn't wait. The first process of a container has none, and exits when the lookup ends.
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  }
  process.exit(status)
}
