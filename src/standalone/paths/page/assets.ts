import { existsSync, readFileSync } from 'node:fs'
import { encodeUtf8 } from '../../../plants/text.ts'
import { VERSION } from '../../../version.ts'
import type { Document } from '../document.ts'
import { SettingError } from '../../settings/variables.ts'

/** Apart from `new URL`, so that no bundler looks there for files. */
const HERE = import.meta.url

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
 * @throws SettingError if it is not there: a bundle has it only if its files were put beside it
 */
export function pageAssets(store: string): ReadonlyMap<string, Document> {
  try {
    // Written out, so that bundlers see which files these are.
    const html = read('page.html', new URL('./page.html', import.meta.url))
    const script = read('page.js', new URL('./page.js', import.meta.url))
    const style = read('page.css', new URL('./page.css', import.meta.url))
    return new Map([
      ['/', documentOf('text/html', html.replace('{{version}}', VERSION).replace('{{store}}', store))],
      ['/page.js', documentOf('text/javascript', script)],
      ['/page.css', documentOf('text/css', style)],
    ])
  } catch {
    throw new SettingError(
      'PLANT_STORE_PAGE',
      'takes 0 here: page.html, page.js and page.css are not beside the program',
    )
  }
}

function read(name: string, url: URL): string {
  // The build does not put it beside the sources.
  const places = [url, new URL(`../../../../dist/standalone/paths/page/${name}`, HERE)]
  return readFileSync(
    places.find((place) => existsSync(place))!,
    'utf8',
  )
}

function documentOf(mediaType: string, text: string): Document {
  const headers = [
    'Content-Security-Policy',
    POLICY,
    'X-Content-Type-Options',
    'nosniff',
    'Referrer-Policy',
    'no-referrer',
    // Otherwise a page that opened this one could give it another address, with another token.
    'Cross-Origin-Opener-Policy',
    'same-origin',
    // Kept, but asked for each time, so that script and page are always of one version.
    'Cache-Control',
    'no-cache',
  ]
  return { status: 200, contentType: `${mediaType}; charset=utf-8`, headers, body: encodeUtf8(text) }
}
