import { readFileSync } from 'node:fs'
import { encodeUtf8 } from '../../plants/text.ts'
import { VERSION } from '../../version.ts'
import type { Document } from '../document.ts'

/** Where the build puts the page, seen from the sources and from what is built of them. */
const BUILT = new URL('../../../dist/standalone/page/', import.meta.url)

/**
 * What a browser may load and do. The icon is in the document, as `data:`. The script is to make elements, not markup;
 * browsers that know trusted types see to that.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/**
 * Reads the page for people.
 * @param store the kind of store, which the page shows
 * @returns its documents by their paths
 */
export function pageDocuments(store: string): ReadonlyMap<string, Document> {
  const page = read('page.html').replace('{{version}}', VERSION).replace('{{store}}', store)
  return new Map([
    ['/', documentOf('text/html', page)],
    ['/page.js', documentOf('text/javascript', read('page.js'))],
    ['/page.css', documentOf('text/css', read('page.css'))],
  ])
}

function read(name: string): string {
  return readFileSync(new URL(name, BUILT), 'utf8')
}

function documentOf(mediaType: string, text: string): Document {
  const headers = [
    'Content-Security-Policy',
    POLICY,
    'X-Content-Type-Options',
    'nosniff',
    'Referrer-Policy',
    'no-referrer',
    // Kept, but asked for each time, so that script and page are always of one version.
    'Cache-Control',
    'no-cache',
  ]
  return { status: 200, contentType: `${mediaType}; charset=utf-8`, headers, body: encodeUtf8(text) }
}
