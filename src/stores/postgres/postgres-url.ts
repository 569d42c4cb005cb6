import { readFileSync } from 'node:fs'
import type { SecureContextOptions, SecureVersion } from 'node:tls'

/** What a URL says, in the terms of `pg` and of Node. */
export interface PostgresTarget {
  /** The URL, with the parameters that `pg` reads itself. */
  readonly connectionString: string
  /** The driver leaves some characters of it escaped. Empty for the default. */
  readonly database: string
  /** Undefined for the default. */
  readonly connectTimeoutMs: number | undefined
  readonly keepAlive: boolean
  readonly keepAliveInitialDelayMillis: number
  readonly channelBinding: string | undefined
  /** TLS options that `pg` has no parameters for. Reads the file that the URL names. */
  readonly readTlsOptions: () => SecureContextOptions
}

const SECONDS_PATTERN = /^\d{1,5}$/
const PORT_PATTERN = /^(?:[1-9]\d{0,4})?$/
const MAX_CONNECT_TIMEOUT_MS = 60_000
const TLS_VERSIONS = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/**
 * The parameters of libpq that a URL can have, and the values that they accept, if not any. The reasons for those that
 * are missing are in docs/postgres.md.
 */
const SUPPORTED_PARAMETERS: Readonly<Record<string, readonly string[] | RegExp | undefined>> = {
  application_name: undefined,
  channel_binding: ['disable', 'prefer', 'require'],
  client_encoding: ['auto', 'utf8', 'UTF8', 'UTF-8'],
  connect_timeout: SECONDS_PATTERN,
  dbname: undefined,
  fallback_application_name: undefined,
  // Other values of these four ask for what the driver doesn't have.
  gssencmode: ['disable', 'prefer'],
  host: undefined,
  keepalives: ['0', '1'],
  keepalives_idle: SECONDS_PATTERN,
  load_balance_hosts: ['disable'],
  options: undefined,
  password: undefined,
  port: PORT_PATTERN,
  ssl: ['true'],
  ssl_max_protocol_version: TLS_VERSIONS,
  ssl_min_protocol_version: TLS_VERSIONS,
  sslcert: undefined,
  sslcompression: ['0'],
  sslcrl: undefined,
  sslkey: undefined,
  // `prefer` and `allow` continue without TLS if the server doesn't support it, which the driver can't.
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  sslnegotiation: ['postgres', 'direct'],
  sslpassword: undefined,
  sslrootcert: undefined,
  sslsni: ['1'],
  // These are what the store does in any case.
  target_session_attrs: ['read-write', 'primary'],
  user: undefined,
}

/** Those that `pg` reads itself. */
const DRIVER_PARAMETERS = new Set(
  'application_name fallback_application_name host options password port sslcert sslkey sslmode sslnegotiation sslrootcert user'.split(
    ' ',
  ),
)

const URL_FORMAT_MESSAGE =
  'takes postgres://user:password@host/database; write @ / ? # and % in a password as %40 %2F %3F %23 and %25'

const SINGLE_HOST_MESSAGE = 'takes one host; a proxy such as HAProxy, or a DNS name, stands for several'

/** A host that is an IPv6 address with a zone ID, as RFC 6874 writes it, or with a plain percent sign. */
const ZONED_HOST = /(?<=^[a-z]+:\/\/(?:[^/?#@]*@)?)\[([\da-f:.]+)%(?:25)?([^\]%]+)\](?![^/?#]*@)/i

/** @throws Error without a part of the password, even if its characters split the URL in the wrong places */
export function parsePostgresUrl(text: string): PostgresTarget {
  // A fragment means nothing here, and an @ in another part would stand before the real host.
  const [, authority] = /^[a-z]+:\/\/([^/?#]*)[^@#]*$/.exec(text) ?? []
  if (authority === undefined) throw new Error(URL_FORMAT_MESSAGE)
  if (authority.slice(authority.lastIndexOf('@') + 1).includes(',')) throw new Error(SINGLE_HOST_MESSAGE)
  const url = parseUrl(text)
  const { searchParams } = url
  const parameters = Object.fromEntries(searchParams)
  if (parameters['host']?.includes(',') === true) throw new Error(SINGLE_HOST_MESSAGE)
  const hasSecret = 'password' in parameters || 'sslpassword' in parameters
  for (const [name, value] of [...searchParams]) {
    checkParameter(name, value, hasSecret)
    if (!DRIVER_PARAMETERS.has(name)) searchParams.delete(name)
  }
  const { dbname, ssl, sslrootcert, sslcrl, sslmode = ssl && 'require' } = parameters
  if (dbname !== undefined) url.pathname = encodeURIComponent(dbname)
  if (sslmode !== undefined) searchParams.set('sslmode', sslmode)
  // As in libpq: anybody can get a certificate that the system trusts, so its name must be checked.
  if (sslrootcert === 'system') {
    if (sslmode !== undefined && sslmode !== 'verify-full') {
      throw new Error('sslrootcert=system takes sslmode=verify-full')
    }
    searchParams.set('sslmode', 'verify-full')
    searchParams.delete('sslrootcert')
  }
  const [minVersion = 0, maxVersion = Infinity] = ['ssl_min_protocol_version', 'ssl_max_protocol_version'].map(
    (name) => (name in parameters ? TLS_VERSIONS.indexOf(parameters[name]!) : undefined),
  )
  if (minVersion > maxVersion) throw new Error('ssl_min_protocol_version is later than ssl_max_protocol_version')
  // The driver's default in this case. If it's explicit, the driver creates the object that gets the other TLS options.
  if (parameters['sslnegotiation'] === 'direct' && sslmode === undefined) searchParams.set('sslmode', 'verify-full')
  // Like libpq, ignore TLS parameters for Unix sockets.
  if (parameters['host']?.startsWith('/') ?? /^%2f/i.test(url.hostname)) {
    for (const name of [...searchParams.keys()]) if (name.startsWith('ssl')) searchParams.delete(name)
  }
  // Otherwise the driver treats `require` as `verify-full`, and warns that it won't for long.
  if (searchParams.has('sslmode')) searchParams.set('uselibpqcompat', 'true')

  const secondsToMs = (name: string): number => 1000 * Number(parameters[name])
  return {
    connectionString: url.href,
    database: decodeURIComponent(url.pathname.slice(1)),
    // For libpq, 0 means no limit. Without a limit, or with one of hours, attempts to reach a hung server fill the pool.
    connectTimeoutMs: Math.min(secondsToMs('connect_timeout'), MAX_CONNECT_TIMEOUT_MS) || undefined,
    keepAlive: parameters['keepalives'] !== '0',
    keepAliveInitialDelayMillis: 'keepalives_idle' in parameters ? secondsToMs('keepalives_idle') : 10_000,
    channelBinding: parameters['channel_binding'],
    readTlsOptions: () => ({
      ...(sslcrl && { crl: readFileSync(sslcrl) }),
      ...(parameters['sslpassword'] && { passphrase: parameters['sslpassword'] }),
      ...tlsVersionOption('minVersion', parameters['ssl_min_protocol_version']),
      ...tlsVersionOption('maxVersion', parameters['ssl_max_protocol_version']),
    }),
  }
}

function tlsVersionOption(name: 'minVersion' | 'maxVersion', version: string | undefined): SecureContextOptions {
  return version === undefined ? {} : { [name]: version as SecureVersion }
}

/** @param hasSecret whether the unknown name can be the part of a password that follows an ampersand */
function checkParameter(name: string, value: string, hasSecret: boolean): void {
  if (!Object.hasOwn(SUPPORTED_PARAMETERS, name)) {
    const problem = hasSecret
      ? 'unknown parameter, or a password whose & is not written as %26'
      : `unknown parameter "${name}"`
    throw new Error(`${problem}; known are ${Object.keys(SUPPORTED_PARAMETERS).join(', ')}`)
  }
  const accepted = SUPPORTED_PARAMETERS[name]
  if (accepted === PORT_PATTERN) {
    if (!PORT_PATTERN.test(value) || Number(value) > 65_535) throw new Error('port takes a number from 1 to 65535')
  } else if (accepted instanceof RegExp) {
    if (!accepted.test(value)) throw new Error(`${name} takes a number of seconds`)
  } else if (accepted?.includes(value) === false) {
    throw new Error(`${name} takes ${accepted.join(', ')}`)
  }
}

/** Whether two URLs differ in the password at most. */
export function isSameDatabase(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => {
    parsePostgresUrl(text)
    const url = parseUrl(text)
    url.password = ''
    url.searchParams.delete('password')
    return url.href
  })
  return first === second
}

function parseUrl(text: string): URL {
  try {
    const [, address, zone] = ZONED_HOST.exec(text) ?? []
    const withoutZone = text.replace(ZONED_HOST, '[$1]')
    decodeURIComponent(withoutZone)
    // Like libpq, don't decode a plus sign as a space.
    const escaped = withoutZone.replace(/\?.*/s, (query) => query.replaceAll('+', '%2B'))
    // Some URLs name the host in a parameter; `new URL` takes no user without a host.
    const url = new URL(escaped.replace('@/', '@localhost/'))
    // `new URL` rejects zone IDs, and the driver takes them in this parameter.
    if (zone !== undefined && !url.searchParams.has('host')) url.searchParams.set('host', `${address}%${zone}`)
    return url
  } catch {
    throw new Error(URL_FORMAT_MESSAGE)
  }
}
