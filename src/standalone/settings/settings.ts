import cluster from 'node:cluster'
import { LIMITS, type Limits } from '../../http-server/create-server.ts'
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

/** Examples of the store URLs that this installation supports. */
const STORE_URL_EXAMPLES = STORE_SCHEMES.flatMap(({ unavailableReason, example }) =>
  unavailableReason === undefined ? example : [],
).join(' or ')
/** The longest socket path that fits into a Unix socket address on every system. Node 20 truncates longer paths. */
export const MAX_SOCKET_PATH_BYTES = 103
const { maxBodyBytes, maxListsPerOwner, storeTimeoutMs } = DEFAULT_OPTIONS

export const isSocketPath = (host: string): boolean => host.startsWith('/')

const STORE_URL = text(
  'PLANT_STORE_URL',
  'memory:',
  'where plants are stored: in memory, in SQLite (such as sqlite:plants.db; needs Node 22.13), or in Postgres',
  `a URL such as ${STORE_URL_EXAMPLES}`,
  isStoreUrl,
)

/** The limits that have a setting. The interval of the checks for late requests is an implementation detail. */
type ConfigurableLimits = Omit<Limits, 'checkIntervalMs'>

const LIMIT_SETTINGS: Readonly<Record<keyof ConfigurableLimits, readonly [name: string, description: string]>> = {
  drainTimeoutMs: [
    'PLANT_STORE_DRAIN_TIMEOUT_MS',
    'how long a shutdown can take after the drain delay, in milliseconds',
  ],
  headersTimeoutMs: ['PLANT_STORE_HEADERS_TIMEOUT_MS', 'how long a request header can take to arrive, in milliseconds'],
  requestTimeoutMs: ['PLANT_STORE_REQUEST_TIMEOUT_MS', 'how long a whole request can take to arrive, in milliseconds'],
  keepAliveTimeoutMs: [
    'PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS',
    'the keep-alive timeout of idle connections, in milliseconds; the server closes them 1 s later',
  ],
  stallTimeoutMs: [
    'PLANT_STORE_STALL_TIMEOUT_MS',
    'how long a response can make no progress before its connection is reset, in milliseconds',
  ],
  maxHeaderBytes: ['PLANT_STORE_MAX_HEADER_BYTES', 'the maximum size of a request header, in bytes'],
  maxConnections: ['PLANT_STORE_MAX_CONNECTIONS', 'the maximum number of open connections'],
}

const limitEntries = Object.entries(LIMIT_SETTINGS).map(([limit, [name, description]]) => {
  const { defaultValue, min, max } = LIMITS[limit as keyof ConfigurableLimits]
  return [limit, integer(name, defaultValue, description, min, max)]
})

const VARIABLES: { readonly [K in keyof Settings]: Variable<Settings[K]> } = {
  host: text(
    'HOST',
    '127.0.0.1',
    'where to listen',
    `a host name, an IP address, or the absolute path of a Unix socket of at most ${MAX_SOCKET_PATH_BYTES} bytes`,
    (host) => (isSocketPath(host) ? Buffer.byteLength(host) <= MAX_SOCKET_PATH_BYTES : host !== ''),
  ),
  port: integer('PORT', 3000, 'the port to listen on; 0 selects a free port', 0, 65_535),
  tokens: tokenList('PLANT_STORE_TOKENS'),
  tokensFile: tokenFile('PLANT_STORE_TOKENS_FILE', 'PLANT_STORE_TOKENS'),
  storeUrl: STORE_URL,
  storeUrlFile: textFile('PLANT_STORE_URL_FILE', STORE_URL),
  migrate: flag('PLANT_STORE_MIGRATE', '1', 'whether to create the table or the SQLite file if it does not exist'),
  postgresPoolSize: integer(
    'PLANT_STORE_POSTGRES_POOL_SIZE',
    10,
    'the maximum number of Postgres connections',
    1,
    10_000,
  ),
  postgresBatch: integer(
    'PLANT_STORE_POSTGRES_BATCH',
    DEFAULT_POSTGRES_BATCH,
    'the maximum number of plants per statement; use 1 for a table that is distributed by owner',
    1,
    10_000,
  ),
  maxBodyBytes: integer(
    'PLANT_STORE_MAX_BODY_BYTES',
    maxBodyBytes,
    'the maximum size of a request body, in bytes',
    1,
    MAX_BODY_BYTES,
  ),
  maxLimit: integer('PLANT_STORE_MAX_LIMIT', undefined, 'the maximum number of plants per list response'),
  maxListsPerOwner: integer(
    'PLANT_STORE_MAX_LISTS_PER_OWNER',
    maxListsPerOwner,
    'the maximum number of long lists that one owner can read at the same time',
  ),
  storeTimeoutMs: integer(
    'PLANT_STORE_STORE_TIMEOUT_MS',
    storeTimeoutMs,
    'the timeout of a store call, in milliseconds',
  ),
  accessLog: flag('PLANT_STORE_ACCESS_LOG', '0', 'whether to log each response'),
  page: flag('PLANT_STORE_PAGE', '1', 'whether to serve the web UI at /'),
  slowMs: integer(
    'PLANT_STORE_SLOW_MS',
    undefined,
    'the duration from which a response is logged as slow, in milliseconds',
  ),
  corsOrigins: originList('PLANT_STORE_CORS_ORIGINS'),
  adminPort: integer(
    'PLANT_STORE_ADMIN_PORT',
    undefined,
    'a second port, for /livez, /readyz and /metrics; 0 selects a free port',
    0,
    65_535,
  ),
  adminHost: text(
    'PLANT_STORE_ADMIN_HOST',
    undefined,
    'where to listen for the admin port; by default HOST, or 127.0.0.1 if HOST is a Unix socket',
    'a host name or an IP address',
    (host) => host !== '' && !isSocketPath(host),
  ),
  reusePort: flag('PLANT_STORE_REUSE_PORT', '0', 'whether several server processes can listen on the port'),
  socketMode: permissions('PLANT_STORE_SOCKET_MODE', '660', 'the permissions of the Unix socket'),
  // Gives a load balancer's health check time to notice that the server is no longer ready.
  drainDelayMs: integer(
    'PLANT_STORE_DRAIN_DELAY_MS',
    0,
    'how long /readyz returns 503 before a shutdown starts to drain connections, in milliseconds',
    0,
  ),
  ...(Object.fromEntries(limitEntries) as Record<keyof ConfigurableLimits, Variable<number>>),
}

/** Reads all settings. @throws SettingError for the first invalid setting */
export function readSettings(environment: NodeJS.ProcessEnv, version: string = process.versions.node): Settings {
  const ownEnvironment = removeServiceLinks(environment)
  const isSet = ({ name }: { readonly name: string }): boolean => ownEnvironment[name] !== undefined
  const { host, port, adminHost, adminPort, tokens, tokensFile, storeUrl, storeUrlFile } = VARIABLES
  const entries = Object.entries<Variable<unknown>>(VARIABLES)
  const names = entries.map(([, { name }]) => name)
  checkVariableNames(ownEnvironment, names)
  // Reject both rather than define a precedence, which could silently use the wrong one.
  for (const [file, inlineVariable] of [[tokensFile, tokens] as const, [storeUrlFile, storeUrl] as const]) {
    if (!isSet(file) || !isSet(inlineVariable)) continue
    throw new SettingError(`${file.name} and ${inlineVariable.name} are both set; set only one of them`)
  }
  if (isSet(adminHost) && !isSet(adminPort)) {
    throw new SettingError(`${adminHost.name} is set without ${adminPort.name}; set both or neither`)
  }
  if (isSet(port) && isSocketPath(readVariable(ownEnvironment, host))) {
    throw new SettingError(`${port.name} must not be set if HOST is the path of a Unix socket`)
  }
  const values = entries.map(([key, variable]) => [key, readVariable(ownEnvironment, variable)])
  const settings = Object.fromEntries(values) as Settings
  if (settings.reusePort) checkReusePort(settings, version)
  // Workers share a port, so with a separate store in each worker, a client's requests would reach different stores.
  if (cluster.isWorker && !isSharedStore(getStoreUrl(settings))) {
    const { name } = settings.storeUrlFile === undefined ? storeUrl : storeUrlFile
    throw new SettingError(
      `${name} must be a store that processes can share, because this is a node:cluster (PM2) worker`,
    )
  }
  return settings
}

const getStoreUrl = ({ storeUrl, storeUrlFile }: Settings): string => storeUrlFile?.value ?? storeUrl

function checkReusePort(settings: Settings, version: string): void {
  const { host, port } = settings
  const [major, minor] = version.split('.').map(Number)
  const { name } = VARIABLES.reusePort
  if (major! * 1000 + minor! < 22012)
    throw new SettingError(`${name} requires Node 22.12 or later; this is Node ${version}`)
  if (isSocketPath(host) || port === 0) throw new SettingError(`${name} requires a TCP port other than 0`)
  if (!isSharedStore(getStoreUrl(settings))) {
    throw new SettingError(
      `${name} requires a store that processes can share, and this one belongs to a single process`,
    )
  }
}

/**
 * Reads only the settings for the address that the server listens on, so that a problem with other settings, such as an
 * invalid token file, can't make a health check fail.
 */
export function readAddress(environment: NodeJS.ProcessEnv): Pick<Settings, 'host' | 'port'> {
  return { host: readVariable(environment, VARIABLES.host), port: readVariable(environment, VARIABLES.port) }
}

function readVariable<T>(environment: NodeJS.ProcessEnv, { name, defaultValue, parse }: Variable<T>): T {
  const value = environment[name] ?? defaultValue
  return value === undefined ? (value as T) : parse(value)
}

const USAGE = `Usage: plant-store [--help | --version | --ready | --migrate]

Without an option, plant-store starts the server.

  --help     print this help
  --version  print the version
  --ready    check whether the server at HOST and PORT is ready; exits with 0 if it is, else with 1
  --migrate  create the table or the SQLite file if it does not exist, and exit

Settings are environment variables. These are their defaults, with the accepted values in parentheses:

`

export function formatHelp(): string {
  const rows = Object.values(VARIABLES).map(
    ({ name, defaultValue, description, expects }) =>
      `  ${defaultValue === undefined ? name : `${name}=${defaultValue}`}\n      ${description} (${expects})\n`,
  )
  return `${USAGE}${rows.join('')}`
}
