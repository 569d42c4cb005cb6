import { createResponse } from '../../../http/respond.ts'
import { encodeUtf8 } from '../../../plants/text.ts'
import { VERSION } from '../../../version.ts'
import type { StaticDocument } from '../program-listener.ts'
import { HTML, SCRIPT, STYLE } from './texts.ts'

/**
 * What a browser may load and do. The icon is in the document, as `data:`. The script is to make elements, not markup;
 * browsers that know trusted types see to that.
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
 * Makes the page for people.
 * @param storeKind the kind of store, which the page shows
 * @returns its documents by their paths
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
    // Otherwise a page that opened this one could give it another address, with another token.
    'Cross-Origin-Opener-Policy',
    'same-origin',
    // Kept, but asked for each time, so that script and page are always of one version.
    'Cache-Control',
    'no-cache',
  ]
  return { ...createResponse(200, headers, encodeUtf8(text)), contentType: `${mediaType}; charset=utf-8` }
}
