import { randomBytes } from 'node:crypto'
import type { HttpServer } from '../http-server/http-server.ts'
import { StoreUnavailableError, type Store } from '../plants/store.ts'
import { isSharedStore, openStore, schemeOf } from '../stores/open-store.ts'
import { endLookups, isLookingUp, lookupsEnded } from '../stores/lookup.ts'
import { setTimeout, sleep } from '../timers.ts'
import { adminPlace, inheritedSockets, listen, servicePlace } from './listening.ts'
import { describeError, firstReason, flushLog, log } from './log.ts'
import { createProgram } from './program.ts'
import { reportDrops } from './reports.ts'
import { createTokenSource, followStoreUrl } from './settings/rotation.ts'
import { warnIfOpen } from './settings/setting-file.ts'
import type { Settings } from './settings/settings.ts'
import { tokenList } from './settings/tokens.ts'
import { SettingError } from './settings/variables.ts'

/** What a stop has to end. */
type Started = Partial<{ store: Store; http: HttpServer; isShared: boolean }>

/** Starts the service, which stops at SIGTERM or SIGINT. @throws SettingError if the store or a port cannot be had */
export async function start(settings: Settings): Promise<void> {
  const started: Started = {}
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal, settings, started))
  // The reader of the output may stop. That must not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  process.on('uncaughtException', (error) => void end('crash', 1, { reason: describeError(error) }))
  logWarnings()
  // Without this listener, Node would open its inspector to every user of the machine; `node --inspect` still does.
  process.on('SIGUSR1', () => undefined)

  // Otherwise diagnostic reports would contain the tokens, and the password of the database.
  delete process.env['PLANT_STORE_TOKENS']
  delete process.env['PLANT_STORE_URL']
  const inherited = inheritedSockets(process.env)
  const demoToken = randomBytes(24).toString('base64url')
  const given = settings.tokens ?? settings.tokensFile?.value
  const tokens = given ?? tokenList('PLANT_STORE_TOKENS').parse(`demo:${demoToken}`)!
  const { authenticate, reread } = createTokenSource(tokens, settings.tokensFile)
  const storeUrl = followStoreUrl(settings.storeUrl, settings.storeUrlFile)
  // With this listener it does not end the process, whether or not there is something to read again.
  process.on('SIGHUP', () => {
    reread()
    storeUrl.reread()
  })

  const scheme = schemeOf(storeUrl.current())
  const store = await open(storeUrl.current, settings, createStoreLog())
  started.store = store
  const served = inherited.admin === undefined ? settings : { ...settings, adminPort: 0 }
  const { http, admin } = createProgram(served, { store, scheme, authenticate, isDraining: () => isStopping })

  // Clients must not get a connection to a program that then cannot start.
  const adminUrl = admin && (await listen(admin.server, inherited.admin ?? adminPlace(settings)))
  const url = await listen(http.server, inherited.service ?? servicePlace(settings))
  Object.assign(started, { http, isShared: settings.reusePort || inherited.service !== undefined })
  reportDrops(http.server)
  for (const file of [settings.tokensFile, settings.storeUrlFile]) if (file !== undefined) warnIfOpen(file)
  log('start', { address: url, admin: adminUrl, store: scheme })
  process.stdout.write(`plant-store listening on ${url}\n`)
  if (given === undefined) process.stdout.write(invitation(url, demoToken, settings.page))
}

/** Logs the warnings of Node and of drivers as JSON, instead of the text that Node prints. */
function logWarnings(): void {
  // Node prints warnings in this listener, which is absent with `--no-warnings`.
  const nodeListener = process.listeners('warning').find(({ name }) => name === 'onWarning')
  if (nodeListener === undefined) return
  process.off('warning', nodeListener)
  process.on('warning', ({ name, message }) => log('warning', { reason: `${name}: ${message}` }))
}

/** @throws SettingError, with status 1 if the program would wait until the table or the file can be made */
export async function migrate(settings: Settings): Promise<void> {
  const url = settings.storeUrlFile?.value ?? settings.storeUrl
  if (!isSharedStore(url)) throw storeError(settings, 'takes for --migrate a store that outlives the program', 2)
  // No client waits for a response, so connecting to a far server can take longer.
  const storeTimeoutMs = 2.5 * settings.storeTimeoutMs
  const store = await open(() => url, { ...settings, storeTimeoutMs, migrate: true })
  try {
    await store.ping?.()
  } catch (error) {
    throw storeError(settings, `names a store that cannot be used: ${firstReason(error as Error)}`, 1)
  }
  await store.close?.()
}

async function open(currentUrl: () => string, settings: Settings, onEvent: OnStoreEvent = () => undefined) {
  try {
    return await openStore(currentUrl(), { ...settings, currentUrl, onEvent })
  } catch (error) {
    const problem = `names a store that cannot be opened: ${(error as Error).message}`
    throw storeError(settings, problem, error instanceof StoreUnavailableError ? 1 : 2)
  }
}

function storeError({ storeUrlFile }: Settings, problem: string, exitStatus: 1 | 2): SettingError {
  return new SettingError(storeUrlFile === undefined ? 'PLANT_STORE_URL' : 'PLANT_STORE_URL_FILE', problem, exitStatus)
}

type OnStoreEvent = Parameters<typeof openStore>[1]['onEvent']

function createStoreLog(): OnStoreEvent {
  let unreachable: string | undefined
  return (event, thrown) => {
    const reason = typeof thrown === 'string' ? thrown : describeError(thrown)
    // The store says so at each try.
    if (event === 'unreachable' && reason === unreachable) return
    if (event === 'unreachable') unreachable = reason
    log(event, { reason })
  }
}

/** What a user can paste into a shell, and open in a browser, to try the service with the token. */
function invitation(url: string, token: string, hasPage: boolean): string {
  const headers = `-H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json'`
  const plant = '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'
  const isWeb = url.startsWith('http:')
  const base = isWeb ? url : 'http://localhost'
  const socket = isWeb ? '' : `--unix-socket ${quoteForShell(url.slice('unix:'.length))} `
  const lines = [
    `The token of the owner demo is ${token}`,
    `Set URL and TOKEN in your shell:\n\n  export URL='${base}'\n  export TOKEN='${token}'`,
    `Create a plant:\n\n  curl ${socket}'${base}/plants' ${headers} -d '${plant}'`,
  ]
  if (hasPage && isWeb) {
    lines.push(
      `Open the web UI with this demo token, which stays in your browser's history:\n\n  ${url}/#token=${token}`,
    )
  }
  return `${lines.join('\n\n')}\n`
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

let isStopping = false

/** Drains after the delay, closes the store, and ends. A second signal, or the deadline, ends with status 1 at once. */
async function stop(signal: NodeJS.Signals, settings: Settings, started: Started): Promise<void> {
  const { drainDelayMs, drainTimeoutMs } = settings
  const { store, http, isShared } = started
  const count = (): object => ({ connections: http?.connectionCount() })
  const endEarly = (reason: string): Promise<void> => end('stop', 1, { reason, ...count() }, signal)
  if (isStopping) return endEarly(`a second signal, ${signal}`)
  isStopping = true
  endLookups()
  if (http !== undefined && drainDelayMs > 0) {
    log('drain-delay', { signal, ms: drainDelayMs })
    await sleep(drainDelayMs)
  }
  // The server keeps to this time, but the store may not.
  setTimeout(() => void endEarly(`${drainTimeoutMs} ms were not enough`), drainTimeoutMs)
  if (http !== undefined) {
    log('drain', { signal, ...count() })
    await http.drain(isShared)
  }
  await store?.close?.()
  await lookupsEnded()
  return end('stop', 0)
}

let isEnding = false

/**
 * Logs why the process ends, after all lines that wait, and ends it.
 * @param signal ends the process if it can't exit by itself soon
 */
async function end(
  event: 'crash' | 'stop',
  status: number,
  fields: object = {},
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<void> {
  if (isEnding) return
  isEnding = true
  // Otherwise the last line could be dropped.
  await flushLog()
  log(event, { exitStatus: status, ...fields }, status === 0 ? 'info' : 'error')
  await flushLog()
  if (isLookingUp()) {
    // `process.exit()` waits for the thread of a lookup, and name servers that are down take half a minute. The default
    // action of a signal doesn't wait. The first process of a container has none, and exits when the lookup ends.
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  }
  process.exit(status)
}
