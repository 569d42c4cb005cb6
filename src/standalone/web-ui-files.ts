import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { createDocument, type Endpoint } from './endpoints.ts'
import { SettingError } from './settings/variables.ts'

/** The build compiles the web UI for browsers, so the server uses the compiled files even if it runs from `src`. */
const DIST = new URL('../../dist/', import.meta.url)

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
}

/**
 * Restricts the web UI to its own scripts, styles and requests. Browsers that support Trusted Types also keep the
 * scripts from parsing text as markup.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = [
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  // Otherwise a page that opened the web UI could navigate it to a link with another token.
  ['Cross-Origin-Opener-Policy', 'same-origin'],
].flat()

/**
 * Reads the files of the web UI, and the modules of the client that it imports.
 * @returns the endpoints that serve the files, by path
 */
export function readWebUi(): ReadonlyMap<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>()
  if (!existsSync(new URL('web-ui/index.html', DIST))) {
    throw new SettingError('the web UI is not built: run `npm run build`, or set PLANT_STORE_WEB_UI=0')
  }
  for (const folder of ['web-ui', 'client']) {
    for (const name of readdirSync(new URL(folder, DIST))) {
      const mediaType = MEDIA_TYPES[extname(name)]
      if (mediaType === undefined) continue
      const content = readFileSync(new URL(`${folder}/${name}`, DIST), 'utf8')
      const headers = [...HEADERS, 'Content-Type', `${mediaType}; charset=utf-8`]
      const path = name === 'index.html' ? '/' : `/${folder}/${name}`
      endpoints.set(path, createDocument(headers, content))
    }
  }
  return endpoints
}
