import { readFileSync } from 'node:fs'
import type { SecureContextOptions, SecureVersion } from 'node:tls'

/** A parsed URL: the options for `pg` and for Node. */
export interface PostgresTarget {
  /** The URL, with only the parameters that `pg` itself supports. */
  readonly connectionString: string
  /** The decoded database name; empty for the default. The driver itself would leave some characters encoded. */
  readonly database: string
  /** Undefined for the default. */
  readonly connectTimeoutMs: number | undefined
  readonly keepAlive: boolean
  readonly keepAliveInitialDelayMillis: number
  readonly channelBinding: string | undefined
  /** Returns the TLS options that `pg` has no parameters for. Reads the `sslcrl` file. */
  readonly readTlsOptions: () => SecureContextOptions
}

const SECONDS_PATTERN = /^\d{1,5}$/
const PORT_PATTERN = /^(?:[1-9]\d{0,4})?$/
const MAX_CONNECT_TIMEOUT_MS = 60_000
const TLS_VERSIONS = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/**
 * The libpq parameters that a URL may contain, with their accepted values; undefined means that any value is accepted.
 * docs/postgres.md explains why the other parameters aren't supported.
 */
const SUPPORTED_PARAMETERS: Readonly<Record<string, readonly string[] | RegExp | undefined>> = {
  application_name: undefined,
  channel_binding: ['disable', 'prefer', 'require'],
  client_encoding: ['auto', 'utf8', 'UTF8', 'UTF-8'],
  connect_timeout: SECONDS_PATTERN,
  dbname: undefined,
  fallback_application_name: undefined,
  // The driver doesn't support other values of gssencmode, load_balance_hosts, sslcompression and sslsni.
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
  // `prefer` and `allow` aren't supported: the driver can't fall back to a connection without TLS.
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  sslnegotiation: ['postgres', 'direct'],
  sslpassword: undefined,
  sslrootcert: undefined,
  sslsni: ['1'],
  // The store always requires a writable primary, so these values change nothing.
  target_session_attrs: ['read-write', 'primary'],
  user: undefined,
}

/** The parameters that `pg` itself supports. */
const DRIVER_PARAMETERS = new Set(
  'application_name fallback_application_name host options password port sslcert sslkey sslmode sslnegotiation sslrootcert user'.split(
    ' ',
  ),
)

const URL_FORMAT_MESSAGE =
  'use the form postgres://user:password@host/database; in a password, write @ / ? # and % as %40 %2F %3F %23 and %25'

const SINGLE_HOST_MESSAGE =
  'the URL must have only one host; for several servers, use a proxy such as HAProxy, or a DNS name'

/** An IPv6 address with a zone ID, which follows `%25` (RFC 6874) or a plain percent sign. */
const ZONED_HOST = /(?<=^[a-z]+:\/\/(?:[^/?#@]*@)?)\[([\da-f:.]+)%(?:25)?([^\]%]+)\](?![^/?#]*@)/i

/**
 * Parses and validates a Postgres URL.
 * @throws Error if the URL is invalid. The message never contains any part of the password, even if unencoded
 *   characters in the password split the URL in the wrong places
 */
export function parsePostgresUrl(text: string): PostgresTarget {
  // Reject a fragment, and an @ after the authority: both mean that the password contains an unencoded character.
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
  // As in libpq, the host name must be verified: anyone can get a certificate from a CA that the system trusts.
  if (sslrootcert === 'system') {
    if (sslmode !== undefined && sslmode !== 'verify-full') {
      throw new Error('sslrootcert=system requires sslmode=verify-full')
    }
    searchParams.set('sslmode', 'verify-full')
    searchParams.delete('sslrootcert')
  }
  const [minVersion = 0, maxVersion = Infinity] = ['ssl_min_protocol_version', 'ssl_max_protocol_version'].map(
    (name) => (name in parameters ? TLS_VERSIONS.indexOf(parameters[name]!) : undefined),
  )
  if (minVersion > maxVersion) throw new Error('ssl_min_protocol_version is higher than ssl_max_protocol_version')
  // verify-full is the driver's default with sslnegotiation=direct. Only if sslmode is explicit does the driver create
  // the `ssl` object that the other TLS options are added to.
  if (parameters['sslnegotiation'] === 'direct' && sslmode === undefined) searchParams.set('sslmode', 'verify-full')
  // Like libpq, ignore TLS parameters for Unix sockets.
  if (parameters['host']?.startsWith('/') ?? /^%2f/i.test(url.hostname)) {
    for (const name of [...searchParams.keys()]) if (name.startsWith('ssl')) searchParams.delete(name)
  }
  // Without this, the driver treats `require` as `verify-full`, and warns that this will change.
  if (searchParams.has('sslmode')) searchParams.set('uselibpqcompat', 'true')

  const secondsToMs = (name: string): number => 1000 * Number(parameters[name])
  return {
    connectionString: url.href,
    database: decodeURIComponent(url.pathname.slice(1)),
    // For libpq, 0 means no timeout. Without a timeout, or with a very long one, connection attempts to an unresponsive
    // server would fill the pool.
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

/** @param hasSecret whether an unknown name could be the rest of a password that contains an unencoded ampersand */
function checkParameter(name: string, value: string, hasSecret: boolean): void {
  if (!Object.hasOwn(SUPPORTED_PARAMETERS, name)) {
    const problem = hasSecret
      ? 'unknown parameter, or a password that contains & (encode it as %26)'
      : `unknown parameter "${name}"`
    throw new Error(`${problem}; supported parameters: ${Object.keys(SUPPORTED_PARAMETERS).join(', ')}`)
  }
  const accepted = SUPPORTED_PARAMETERS[name]
  if (accepted === PORT_PATTERN) {
    if (!PORT_PATTERN.test(value) || Number(value) > 65_535) throw new Error('port must be a number from 1 to 65535')
  } else if (accepted instanceof RegExp) {
    if (!accepted.test(value)) throw new Error(`${name} must be a number of seconds`)
  } else if (accepted?.includes(value) === false) {
    throw new Error(`${name} must be one of: ${accepted.join(', ')}`)
  }
}

/** Whether two URLs are identical except for the password. @throws Error if one of them is invalid */
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
    // `new URL` rejects a user without a host, but the host might be in a parameter instead.
    const url = new URL(escaped.replace('@/', '@localhost/'))
    // `new URL` rejects zone IDs, but the driver accepts them in the `host` parameter.
    if (zone !== undefined && !url.searchParams.has('host')) url.searchParams.set('host', `${address}%${zone}`)
    return url
  } catch {
    throw new Error(URL_FORMAT_MESSAGE)
  }
}
