import { readFileSync } from 'node:fs'

/** A key and a certificate for 127.0.0.1 that nobody trusts. They expire in the year 2126. */
export const TLS: { readonly key: Buffer; readonly cert: Buffer } = {
  key: readFileSync(new URL('localhost.key', import.meta.url)),
  cert: readFileSync(new URL('localhost.crt', import.meta.url)),
}
