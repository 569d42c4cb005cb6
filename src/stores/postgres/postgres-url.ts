/** The parameters that a URL may have, as in libpq, and the values that they may have, if not any. */
const PARAMETERS: Readonly<Record<string, readonly string[] | undefined>> = {
  application_name: undefined,
  host: undefined,
  options: undefined,
  port: undefined,
  sslcert: undefined,
  sslkey: undefined,
  // `prefer` and `allow` go on without TLS if the server has none, which the driver cannot.
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  sslnegotiation: ['postgres', 'direct'],
  sslrootcert: undefined,
  // These change nothing: no other server is used.
  target_session_attrs: ['read-write', 'primary'],
}

const FORM =
  'takes postgres://user:password@host/database; write @ / ? # and % in a password as %40 %2F %3F %23 and %25'

/** Writes it for the driver. No error shows a piece of the password, even if its characters split the URL wrongly. */
export function readPostgresUrl(text: string): string {
  // A fragment means nothing here, and an @ in another part would stand before the real host.
  const [, authority] = /^[a-z]+:\/\/([^/?#]*)[^@#]*$/.exec(text) ?? []
  if (authority === undefined) throw new Error(FORM)
  if (authority.slice(authority.lastIndexOf('@') + 1).includes(',')) {
    throw new Error('takes one host; a proxy such as HAProxy, or a DNS name, stands for several')
  }
  const url = parse(text)
  for (const [name, value] of url.searchParams) {
    if (!Object.hasOwn(PARAMETERS, name)) {
      throw new Error(`unknown parameter "${name}"; known are ${Object.keys(PARAMETERS).join(', ')}`)
    }
    const values = PARAMETERS[name]
    if (values?.includes(value) === false) throw new Error(`${name} takes ${values.join(', ')}`)
  }
  url.searchParams.delete('target_session_attrs')
  // Without it the driver takes `require` for `verify-full`, and warns that it will not for long.
  if (url.searchParams.has('sslmode')) url.searchParams.set('uselibpqcompat', 'true')
  return url.href
}

export function isSameDatabase(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => {
    const url = new URL(readPostgresUrl(text))
    url.password = ''
    return url.href
  })
  return first === second
}

function parse(text: string): URL {
  try {
    decodeURIComponent(text)
    // Some URLs name the host in a parameter; `new URL` takes no user without a host.
    return new URL(text.replace('@/', '@localhost/'))
  } catch {
    throw new Error(FORM)
  }
}
