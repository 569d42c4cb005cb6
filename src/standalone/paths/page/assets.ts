import { createResponse } from '../../../legacy/http/respond.ts'
import { encodeUtf8 } from '../../../legacy/plants/text.ts'
import { VERSION } from '../../../version.ts'
import type { StaticDocument } from '../program-listener.ts'
import { HTML, SCRIPT, STYLE } from './texts.ts'

/**
 * Restricts the web UI to its own script, style and requests, and to its icon, which is a `data:` URL. Browsers that
 * support Trusted Types also keep the script from parsing text as markup.
 */
const CONTENT_SECURITY_POLICY = [
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
 * Creates the files of the web UI.
 * @param storeKind the kind of store, displayed in the web UI
 * @returns the files, keyed by path
 */
export function createWebUiAssets(storeKind: string): ReadonlyMap<string, StaticDocument> {
  return new Map([
    ['/', createAsset('text/html', HTML.replace('{{version}}', VERSION).replace('{{store}}', storeKind))],
    ['/page.js', createAsset('text/javascript', SCRIPT)],
    ['/page.css', createAsset('text/css', STYLE)],
  ])
}

function createAsset(mediaType: string, text: string): StaticDocument {
  const headers = [
    'Content-Security-Policy',
    CONTENT_SECURITY_POLICY,
    'X-Content-Type-Options',
    'nosniff',
    'Referrer-Policy',
    'no-referrer',
    // Otherwise a page that opened the web UI could navigate it to a link with another token.
    'Cross-Origin-Opener-Policy',
    'same-origin',
    // Browsers cache the files but revalidate them on each load, so that the script and the page always have the same
    // version.
    'Cache-Control',
    'no-cache',
  ]
  return { ...createResponse(200, headers, encodeUtf8(text)), contentType: `${mediaType}; charset=utf-8` }
}
