import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { serveBlankPage, skipWithoutChromium, openPage, type WebUiPage } from '../support/page/web-ui-page.ts'
import { getCode } from '../support/package/documents.ts'
import { startExample } from '../support/package/examples.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'

/** The part of a response that the page can read, or the name of the error. */
type BrowserResult = Readonly<{ status: number; body: string; headers: Readonly<Record<string, string>> }> | string

suite('a web page from another origin in a browser', { skip: skipWithoutChromium }, () => {
  /** Makes the page send a request with `fetch`. */
  function fetchFrom(page: WebUiPage, url: string, init: RequestInit = {}): Promise<BrowserResult> {
    const given = { headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }, ...init }
    return page.evaluate(`fetch(${JSON.stringify(url)}, ${JSON.stringify(given)}).then(
      async (response) => ({
        status: response.status,
        body: await response.text(),
        headers: Object.fromEntries(response.headers),
      }),
      (error) => error.name,
    )`)
  }

  function post(id: number, name = 'Fern'): RequestInit {
    return { method: 'POST', body: JSON.stringify({ id, name }) }
  }

  async function startWith(t: TestContext, origins: string): Promise<string> {
    return (await startProgram(t, origins === '' ? {} : { PLANT_STORE_CORS_ORIGINS: origins })).url
  }

  /** Starts the example of an embedding server that allows an origin. */
  async function startHost(t: TestContext, origin: string): Promise<string> {
    const code = getCode('docs/embedding.md', 'js', 'CORS').replace('a-long-random-token', TOKEN)
    return `http://127.0.0.1:${(await startExample(t, code.replace('https://app.example', origin))).port}/api`
  }

  for (const [what, start, own] of [
    [
      'on the standalone server with a list of origins',
      (t, origin) => startWith(t, `https://a.example,${origin}`),
      ['x-request-id'],
    ],
    ['on the standalone server with *', (t) => startWith(t, '*'), ['x-request-id']],
    ['on an embedding server', startHost, []],
  ] as readonly [what: string, start: typeof startHost, own: readonly string[]][]) {
    test(`can create, list and delete plants ${what}`, async (t) => {
      const page = await openPage(t, serveBlankPage)
      const url = await start(t, page.url)
      for (const [path, init, status, body, header] of [
        ['/plants', post(1), 200, '{"name":"Fern"}', undefined],
        ['/plants', post(2), 200, '{"name":"Fern"}', undefined],
        ['/plants?limit=1', {}, 200, '[{"name":"Fern"}]', 'link'],
        ['/plants/1', { method: 'DELETE' }, 204, '', undefined],
        ['/plants', { headers: {} }, 401, /^{"error":40100,/, 'www-authenticate'],
        ['/plants/1', { method: 'POST' }, 405, /^{"error":40500,/, 'allow'],
        ['/plants', post(1, 'x'.repeat(20_000_000)), 413, /^{"error":41300,/, undefined],
      ] as const) {
        const seen = await fetchFrom(page, url + path, init)
        assert.ok(typeof seen === 'object', path)
        assert.equal(seen.status, status)
        if (typeof body === 'string') assert.equal(seen.body, body)
        else assert.match(seen.body, body)
        const names = Object.keys(seen.headers).filter((name) => !/^content-|^cache-control$/.test(name))
        assert.deepEqual(names, header === undefined ? own : [header, ...own].sort())
      }
    })
  }

  for (const origins of ['*', 'a list of origins']) {
    test(`can send any request header to the standalone server with ${origins}`, async (t) => {
      const page = await openPage(t, serveBlankPage)
      const url = await startWith(t, origins === '*' ? '*' : `https://a.example,${page.url}`)
      const names = ['traceparent', 'sentry-trace', 'baggage', 'X-Requested-With', 'Cache-Control', 'X-Request-Id', 'X']
      const headers = Object.fromEntries(names.map((name) => [name, 'a']))
      const seen = await fetchFrom(page, `${url}/plants`, { headers: { Authorization: `Bearer ${TOKEN}`, ...headers } })
      assert.ok(typeof seen === 'object' && seen.status === 200, JSON.stringify(seen))
    })
  }

  for (const [what, start] of [
    ['on the standalone server without CORS', (t) => startWith(t, '')],
    [
      'on the standalone server if only other origins are allowed',
      (t) => startWith(t, 'http://127.0.0.1:1,https://a.example'),
    ],
    ['on an embedding server that allows only another origin', (t) => startHost(t, 'https://a.example')],
  ] as readonly [what: string, start: (t: TestContext) => Promise<string>][]) {
    test(`can't read or change plants ${what}`, async (t) => {
      const page = await openPage(t, serveBlankPage)
      const url = await start(t)
      assert.equal(await fetchFrom(page, `${url}/plants`), 'TypeError')
      assert.equal(await fetchFrom(page, `${url}/plants`, post(1)), 'TypeError')
      // This request needs no preflight, so the browser sends it.
      assert.equal(await fetchFrom(page, `${url}/livez`, { headers: {} }), 'TypeError')
      const list = await fetch(`${url}/plants`, { headers: { Authorization: `Bearer ${TOKEN}` } })
      assert.equal(await list.text(), '[]')
    })
  }
})
