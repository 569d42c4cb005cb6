import { readFileSync } from 'node:fs'

/** The key and the self-signed certificate for 127.0.0.1. They expire in 2126. */
export const TLS: { readonly key: Buffer; readonly cert: Buffer } = {
  key: readFileSync(new URL('localhost.key', import.meta.url)),
  cert: readFileSync(new URL('localhost.crt', import.meta.url)),
}
