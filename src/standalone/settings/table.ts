import { LIMITS } from '../../http-server/create-server.ts'
import { DEFAULT_OPTIONS, MAX_VALUES } from '../../options.ts'
import { DEFAULT_TABLE, schemeOf, STORE_URL_EXAMPLES, TABLE_NAME } from '../../stores/open-store.ts'
import { ENTRY_FORMAT, parseTokenList, type Tokens } from './tokens.ts'
import {
  checkVariableNames,
  flag,
  integer,
  parseOrigins,
  readVariable,
  removeServiceVariables,
  text,
  type Environment,
  type Value,
  type Variable,
} from './variables.ts'

/** Node 20 truncates the path of a Unix socket that is longer than an address can be on some systems. */
const MAX_SOCKET_PATH_BYTES = 103
const PORTS = { min: 0, max: 65_535 }

export const isSocketPath = (host: string): boolean => host.startsWith('/')

const limit = (option: keyof typeof LIMITS, name: string, description: string): Variable<number, string> =>
  integer(name, String(LIMITS[option].defaultValue), description, LIMITS[option])

/** The variable of each setting. `--help`, the checks and the suggestions for unknown names derive from this table. */
export const VARIABLES = {
  host: text(
    'HOST',
    '127.0.0.1',
    'where to listen',
    `a host name, an IP address, or the absolute path of a Unix socket of at most ${MAX_SOCKET_PATH_BYTES} bytes`,
    (host) => (isSocketPath(host) ? Buffer.byteLength(host) <= MAX_SOCKET_PATH_BYTES : /^\S+$/.test(host)),
  ),
  port: integer('PORT', '3000', 'the port to listen on; 0 selects a free port', PORTS),
  reusePort: flag('PLANT_STORE_REUSE_PORT', '0', 'whether several server processes can listen on the port'),
  tokens: {
    name: 'PLANT_STORE_TOKENS',
    defaultValue: undefined,
    description: 'the bearer tokens and their owners; without any, the server generates a demo token',
    expects: `comma-separated entries in UTF-8: ${ENTRY_FORMAT}`,
    parse: (value: string): Tokens => parseTokenList('PLANT_STORE_TOKENS', value),
  },
  tokensFile: text('PLANT_STORE_TOKENS_FILE', undefined, 'token entries in a file, one per line', 'the path of a file'),
  storeUrl: text(
    'PLANT_STORE_URL',
    'memory:',
    'where plants are stored',
    `a URL such as ${STORE_URL_EXAMPLES.join(', ')}`,
    (url) => schemeOf(url) !== undefined,
  ),
  storeUrlFile: text('PLANT_STORE_URL_FILE', undefined, 'PLANT_STORE_URL in a file', 'the path of a file'),
  migrate: flag('PLANT_STORE_MIGRATE', '1', 'whether to create the table or the SQLite file if it does not exist'),
  postgresTable: text(
    'PLANT_STORE_POSTGRES_TABLE',
    DEFAULT_TABLE,
    'the table of the plants',
    'a schema and a table, such as public.plants',
    (table) => TABLE_NAME.test(table),
  ),
  postgresPoolSize: integer('PLANT_STORE_POSTGRES_POOL_SIZE', '10', 'the maximum number of connections', {
    max: 10_000,
  }),
  corsOrigins: {
    name: 'PLANT_STORE_CORS_ORIGINS',
    defaultValue: undefined,
    description: 'the origins whose web pages can call the API with CORS',
    expects: 'comma-separated origins such as https://app.example, or *',
    parse: parseOrigins,
  },
  adminPort: integer('PLANT_STORE_ADMIN_PORT', undefined, 'a second port, for health checks and metrics', PORTS),
  adminHost: text(
    'PLANT_STORE_ADMIN_HOST',
    undefined,
    'where to listen for the admin port; by default HOST, or 127.0.0.1 if HOST is a Unix socket',
    'a host name or an IP address',
    (host) => /^[^\s/]+$/.test(host),
  ),
  webUi: flag('PLANT_STORE_WEB_UI', '1', 'whether to serve the web UI at /'),
  maxBodyBytes: integer(
    'PLANT_STORE_MAX_BODY_BYTES',
    `${DEFAULT_OPTIONS.maxBodyBytes}`,
    'the maximum size of a body, in bytes',
    { max: MAX_VALUES.maxBodyBytes },
  ),
  maxLimit: integer('PLANT_STORE_MAX_LIMIT', undefined, 'the maximum number of plants per list response'),
  storeTimeoutMs: integer(
    'PLANT_STORE_STORE_TIMEOUT_MS',
    `${DEFAULT_OPTIONS.storeTimeoutMs}`,
    'the timeout of a store call, in ms',
  ),
  accessLog: flag('PLANT_STORE_ACCESS_LOG', '0', 'whether to log each response'),
  drainDelayMs: integer('PLANT_STORE_DRAIN_DELAY_MS', '0', 'how long /readyz fails before a shutdown, in ms', {
    min: 0,
  }),
  drainTimeoutMs: limit('drainTimeoutMs', 'PLANT_STORE_DRAIN_TIMEOUT_MS', 'how long a shutdown can take, in ms'),
  headersTimeoutMs: limit('headersTimeoutMs', 'PLANT_STORE_HEADERS_TIMEOUT_MS', 'how long a header can take, in ms'),
  requestTimeoutMs: limit('requestTimeoutMs', 'PLANT_STORE_REQUEST_TIMEOUT_MS', 'how long a request can take, in ms'),
  keepAliveTimeoutMs: limit('keepAliveTimeoutMs', 'PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS', 'the keep-alive timeout, in ms'),
  stallTimeoutMs: limit('stallTimeoutMs', 'PLANT_STORE_STALL_TIMEOUT_MS', 'how long a connection can stall, in ms'),
  maxHeaderBytes: limit('maxHeaderBytes', 'PLANT_STORE_MAX_HEADER_BYTES', 'the maximum size of a header, in bytes'),
  maxConnections: limit('maxConnections', 'PLANT_STORE_MAX_CONNECTIONS', 'the maximum number of open connections'),
}

/** The values of the variables. */
export type Values = { readonly [K in keyof typeof VARIABLES]: Value<(typeof VARIABLES)[K]> }

/**
 * Reads all variables.
 * @throws SettingError for the first unknown or invalid variable
 */
export function readValues(processEnvironment: Environment): Values {
  const environment = removeServiceVariables(processEnvironment)
  const entries = Object.entries<Variable<unknown>>(VARIABLES)
  const names = entries.map(([, { name }]) => name)
  checkVariableNames(environment, names)
  const values = entries.map(([key, variable]) => [key, readVariable(environment, variable)])
  return Object.fromEntries(values) as Values
}

/** @param name the variable that the URL comes from */
export const parseStoreUrl = (name: string, url: string): string =>
  readVariable({ [name]: url }, { ...VARIABLES.storeUrl, name })

/** Reads only the address, so that a problem with other settings can't make a health check fail. */
export function readAddress(environment: Environment): Pick<Values, 'host' | 'port'> {
  const ownEnvironment = removeServiceVariables(environment)
  return { host: readVariable(ownEnvironment, VARIABLES.host), port: readVariable(ownEnvironment, VARIABLES.port) }
}
