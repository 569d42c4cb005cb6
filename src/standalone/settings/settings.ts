import cluster from 'node:cluster'
import { LIMIT_DEFINITIONS, type Limits } from '../../http-server/limits.ts'
import { DEFAULT_OPTIONS, MAX_BODY_BYTES } from '../../options.ts'
import { DEFAULT_POSTGRES_BATCH } from '../../stores/batch-size.ts'
import { isSharedStore, isStoreUrl, STORE_SCHEMES } from '../../stores/open-store.ts'
import { textFile, type SettingFile } from './setting-file.ts'
import { tokenFile, tokenList, type Tokens } from './tokens.ts'
import { checkVariableNames, SettingError, removeServiceLinks, type Origins, type Variable } from './variables.ts'
import { flag, integer, originList, permissions, text } from './variables.ts'

export interface Settings extends ConfigurableLimits, Omit<typeof DEFAULT_OPTIONS, 'maxLimit'> {
  readonly host: string
  readonly port: number
  readonly tokens: Tokens | undefined
  readonly tokensFile: SettingFile<Tokens> | undefined
  readonly storeUrl: string
  readonly storeUrlFile: SettingFile<string> | undefined
  readonly migrate: boolean
  readonly postgresPoolSize: number
  readonly postgresBatch: number
  readonly maxLimit: number | undefined
  readonly accessLog: boolean
  readonly page: boolean
  readonly slowMs: number | undefined
  readonly corsOrigins: Origins | undefined
  readonly adminPort: number | undefined
  readonly adminHost: string | undefined
  readonly reusePort: boolean
  readonly socketMode: number
  readonly drainDelayMs: number
}

const STORE_URL_EXAMPLES = STORE_SCHEMES.flatMap(({ unavailableReason, example }) =>
  unavailableReason === undefined ? example : [],
).join(' or ')
/** What systems have room for in the address of a Unix socket. Node 20 cuts what is longer. */
export const MAX_SOCKET_PATH_BYTES = 103
const { maxBodyBytes, maxListsPerOwner, storeTimeoutMs } = DEFAULT_OPTIONS

export const isSocketPath = (host: string): boolean => host.startsWith('/')

const STORE_URL = text(
  'PLANT_STORE_URL',
  'memory:',
  `a URL like ${STORE_URL_EXAMPLES}: where the plants are kept`,
  isStoreUrl,
)

/** Nobody needs to set how often the server looks for late requests. */
type ConfigurableLimits = Omit<Limits, 'checkIntervalMs'>

const LIMIT_SETTINGS: Readonly<Record<keyof ConfigurableLimits, readonly [name: string, description: string]>> = {
  drainTimeoutMs: ['PLANT_STORE_DRAIN_TIMEOUT_MS', 'milliseconds that a shutdown may take after that delay'],
  headersTimeoutMs: ['PLANT_STORE_HEADERS_TIMEOUT_MS', 'milliseconds in which a header must arrive'],
  requestTimeoutMs: ['PLANT_STORE_REQUEST_TIMEOUT_MS', 'milliseconds in which a whole request must arrive'],
  keepAliveTimeoutMs: ['PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS', 'milliseconds (and 1 s) until an idle connection closes'],
  stallTimeoutMs: ['PLANT_STORE_STALL_TIMEOUT_MS', 'milliseconds after which a client that takes nothing is cut'],
  maxHeaderBytes: ['PLANT_STORE_MAX_HEADER_BYTES', 'the most header bytes'],
  maxConnections: ['PLANT_STORE_MAX_CONNECTIONS', 'the most connections'],
}

const limitEntries = Object.entries(LIMIT_SETTINGS).map(([limit, [name, description]]) => {
  const { defaultValue, min, max } = LIMIT_DEFINITIONS[limit as keyof ConfigurableLimits]
  return [limit, integer(name, defaultValue, description, min, max)]
})

const VARIABLES: { readonly [K in keyof Settings]: Variable<Settings[K]> } = {
  host: text(
    'HOST',
    '127.0.0.1',
    `the host name or address to listen on, or the absolute path of a Unix socket, of ${MAX_SOCKET_PATH_BYTES} bytes at most`,
    (host) => (isSocketPath(host) ? Buffer.byteLength(host) <= MAX_SOCKET_PATH_BYTES : host !== ''),
  ),
  port: integer('PORT', 3000, 'the port to listen on; 0 takes a free one', 0, 65_535),
  tokens: tokenList('PLANT_STORE_TOKENS'),
  tokensFile: tokenFile('PLANT_STORE_TOKENS_FILE', 'PLANT_STORE_TOKENS'),
  storeUrl: STORE_URL,
  storeUrlFile: textFile('PLANT_STORE_URL_FILE', STORE_URL),
  migrate: flag('PLANT_STORE_MIGRATE', '1', 'whether the table, or the SQLite file, is made if there is none'),
  postgresPoolSize: integer('PLANT_STORE_POSTGRES_POOL_SIZE', 10, 'the most connections to Postgres', 1, 10_000),
  postgresBatch: integer(
    'PLANT_STORE_POSTGRES_BATCH',
    DEFAULT_POSTGRES_BATCH,
    'the most plants of one statement; 1 suits a table that is distributed by owner',
    1,
    10_000,
  ),
  maxBodyBytes: integer('PLANT_STORE_MAX_BODY_BYTES', maxBodyBytes, 'the most bytes of a body', 1, MAX_BODY_BYTES),
  maxLimit: integer('PLANT_STORE_MAX_LIMIT', undefined, 'the most plants of a list'),
  maxListsPerOwner: integer(
    'PLANT_STORE_MAX_LISTS_PER_OWNER',
    maxListsPerOwner,
    'the most long lists of one owner that are read at once',
  ),
  storeTimeoutMs: integer('PLANT_STORE_STORE_TIMEOUT_MS', storeTimeoutMs, 'milliseconds for a call of the store'),
  accessLog: flag('PLANT_STORE_ACCESS_LOG', '0', 'whether a line is logged for each response'),
  page: flag('PLANT_STORE_PAGE', '1', 'whether there is a page for people at /'),
  slowMs: integer('PLANT_STORE_SLOW_MS', undefined, 'milliseconds from which on a response is logged as slow'),
  corsOrigins: originList('PLANT_STORE_CORS_ORIGINS'),
  adminPort: integer('PLANT_STORE_ADMIN_PORT', undefined, 'a port for the probes and the metrics', 0, 65_535),
  adminHost: text(
    'PLANT_STORE_ADMIN_HOST',
    undefined,
    'the host name or address of that port; HOST if not set, or 127.0.0.1 if that is a path',
    (host) => host !== '' && !isSocketPath(host),
  ),
  reusePort: flag('PLANT_STORE_REUSE_PORT', '0', 'whether several programs may listen on the port'),
  socketMode: permissions('PLANT_STORE_SOCKET_MODE', '660', 'who may connect to the Unix socket'),
  // A balancer's health check needs time to see that the service is no longer ready.
  drainDelayMs: integer(
    'PLANT_STORE_DRAIN_DELAY_MS',
    0,
    'milliseconds in which a shutdown only makes /readyz answer 503, before it drains',
    0,
  ),
  ...(Object.fromEntries(limitEntries) as Record<keyof ConfigurableLimits, Variable<number>>),
}

export function readSettings(environment: NodeJS.ProcessEnv, version: string = process.versions.node): Settings {
  const ownEnvironment = removeServiceLinks(environment)
  const isSet = ({ name }: { readonly name: string }): boolean => ownEnvironment[name] !== undefined
  const { host, port, adminHost, adminPort, tokens, tokensFile, storeUrl, storeUrlFile } = VARIABLES
  const entries = Object.entries<Variable<unknown>>(VARIABLES)
  const names = entries.map(([, { name }]) => name)
  checkVariableNames(ownEnvironment, names)
  // If both were set, nobody could see which one counts.
  for (const [file, inlineVariable] of [[tokensFile, tokens] as const, [storeUrlFile, storeUrl] as const]) {
    if (!isSet(file) || !isSet(inlineVariable)) continue
    throw new SettingError(file.name, `and ${inlineVariable.name} are both set: set only one of them`)
  }
  if (isSet(adminHost) && !isSet(adminPort)) throw new SettingError(adminHost.name, `needs ${adminPort.name} beside it`)
  if (isSet(port) && isSocketPath(readVariable(ownEnvironment, host))) {
    throw new SettingError(port.name, 'must not be set if HOST is the path of a Unix socket')
  }
  const values = entries.map(([key, variable]) => [key, readVariable(ownEnvironment, variable)])
  const settings = Object.fromEntries(values) as Settings
  if (settings.reusePort) checkReusePort(settings, version)
  // Workers share a port, so each request would see the plants of another worker.
  if (cluster.isWorker && !isSharedStore(getStoreUrl(settings))) {
    const { name } = settings.storeUrlFile === undefined ? storeUrl : storeUrlFile
    throw new SettingError(name, 'takes a store that processes can share, in a worker of node:cluster (PM2)')
  }
  return settings
}

const getStoreUrl = ({ storeUrl, storeUrlFile }: Settings): string => storeUrlFile?.value ?? storeUrl

function checkReusePort(settings: Settings, version: string): void {
  const { host, port } = settings
  const [major, minor] = version.split('.').map(Number)
  const { name } = VARIABLES.reusePort
  if (major! * 1000 + minor! < 22012) throw new SettingError(name, `needs Node 22.12 or later, not ${version}`)
  if (isSocketPath(host) || port === 0) throw new SettingError(name, 'needs a PORT other than 0')
  if (!isSharedStore(getStoreUrl(settings))) {
    throw new SettingError(name, 'needs a store that programs can share; here each would have plants of its own')
  }
}

/** Reads where the program listens, whatever the other settings are: a file of tokens may be wrong by now. */
export function readAddress(environment: NodeJS.ProcessEnv): Pick<Settings, 'host' | 'port'> {
  return { host: readVariable(environment, VARIABLES.host), port: readVariable(environment, VARIABLES.port) }
}

function readVariable<T>(environment: NodeJS.ProcessEnv, { name, defaultValue, parse }: Variable<T>): T {
  const value = environment[name] ?? defaultValue
  return value === undefined ? (value as T) : parse(value)
}

const USAGE = `Usage: plant-store [--help | --version | --ready | --migrate]

  --help     prints this
  --version  prints the version
  --ready    asks the service at HOST and PORT whether it is ready, and ends with status 0 or 1
  --migrate  makes the table, or the SQLite file, if there is none, and ends

The settings are environment variables. With their defaults, they are:

`

export function formatHelp(): string {
  const rows = Object.values(VARIABLES).map(
    ({ name, defaultValue, expects }) =>
      `  ${defaultValue === undefined ? name : `${name}=${defaultValue}`}\n      ${expects}\n`,
  )
  return `${USAGE}${rows.join('')}`
}
