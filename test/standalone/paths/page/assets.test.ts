import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { HTML, SCRIPT, STYLE } from '../../../../src/standalone/paths/page/texts.ts'
import { createWebUiListener } from '../../../support/page/web-ui-page.ts'
import { sendRequest, serve } from '../../../support/wire/service.ts'

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

/** The path of each file, its media type, and its text. */
const DOCUMENTS = [
  ['/', 'text/html; charset=utf-8', HTML.replace('{{version}}', '1.0.0').replace('{{store}}', 'memory')],
  ['/page.js', 'text/javascript; charset=utf-8', SCRIPT],
  ['/page.css', 'text/css; charset=utf-8', STYLE],
] as const

for (const [path, type, whole] of DOCUMENTS) {
  test(`${path} is served with a strict Content-Security-Policy, or with 304 if the client has it cached`, async (t) => {
    const server = await serve(t, createWebUiListener())
    const cached = {
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-cache',
      etag: `"${createHash('sha256').update(whole).digest('base64url')}"`,
    }
    const full = { ...cached, 'content-type': type, 'content-length': String(Buffer.byteLength(whole)) }
    const rows = [
      ['GET', [], { status: 200, headers: full, body: whole }],
      ['HEAD', [], { status: 200, headers: full, body: '' }],
      ['GET', ['If-None-Match', `W/"old", W/${cached.etag}`], { status: 304, headers: cached, body: '' }],
    ] as const
    for (const [method, fields, expected] of rows) {
      assert.deepEqual(await sendRequest(server, { method, path, fields }), expected)
    }
  })
}

test('the web UI files are not served at other paths', async (t) => {
  const server = await serve(t, createWebUiListener())
  const paths = ['//', '/page.html', '/page.js/', '/Page.js', '/page', '/index.html', '/.']
  const statuses = paths.map(async (path) => (await sendRequest(server, { method: 'GET', path, fields: [] })).status)
  assert.deepEqual(new Set(await Promise.all(statuses)), new Set([404]))
})

test('the files of the web UI are at most 14 kB when compressed', () => {
  const bytes = DOCUMENTS.reduce((sum, [, , text]) => sum + gzipSync(text).length, 0)
  assert.ok(bytes <= 14_000, `${bytes} bytes`)
})
