import assert from 'node:assert/strict'
import { after, suite, test, type TestContext } from 'node:test'
import type { Browser, Page } from 'puppeteer-core'
import { serveListener } from '../support/page/browser.ts'
import { launchChromium, needsChromium } from '../support/page/chromium.ts'
import { NEW_ID, startProgram, TOKEN, type Program } from '../support/program/program.ts'

/** What a page can read of a response; the name of the error if it may read none. */
type Seen = Readonly<{ status: number; body: string; headers: Readonly<Record<string, string>> }> | string

suite('the page of another origin, in a browser', { skip: needsChromium }, () => {
  let browser: Promise<Browser> | undefined
  after(async () => (await browser)?.close())

  /** Opens a page of another origin than the program has, which is on a port of its own. */
  async function openElsewhere(t: TestContext): Promise<{ page: Page; origin: string }> {
    const origin = await serveListener(t, (_request, response) => response.setHeader('Content-Type', 'text/html').end())
    browser ??= launchChromium()
    const context = await (await browser).createBrowserContext()
    t.after(() => context.close())
    const page = await context.newPage()
    await page.goto(origin)
    return { page, origin }
  }

  /** Has the page fetch something of the program. */
  async function fetchFrom(page: Page, program: Program, path: string, init: RequestInit = {}): Promise<Seen> {
    const given = { headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }, ...init }
    return (await page.evaluate(`fetch(${JSON.stringify(program.url + path)}, ${JSON.stringify(given)}).then(
      async (response) => ({
        status: response.status,
        body: await response.text(),
        headers: Object.fromEntries(response.headers),
      }),
      (error) => error.name,
    )`)) as Seen
  }

  function post(id: number, name = 'Fern'): RequestInit {
    return { method: 'POST', body: JSON.stringify({ id, name }) }
  }

  for (const [what, origins] of [
    ['that is in the list', (origin: string) => `https://a.example,${origin}`],
    ['if all may', () => '*'],
  ] as const) {
    test(`may create, list and delete ${what}, and reads errors and the link to the next plants`, async (t) => {
      const { page, origin } = await openElsewhere(t)
      const program = await startProgram(t, { PLANT_STORE_CORS_ORIGINS: origins(origin) })
      for (const [path, init, status, body, header] of [
        ['/plants', post(1), 200, '{"name":"Fern"}', undefined],
        ['/plants', post(2), 200, '{"name":"Fern"}', undefined],
        ['/plants?limit=1', {}, 200, '[{"name":"Fern"}]', 'link'],
        ['/plants/1', { method: 'DELETE' }, 204, '', undefined],
        ['/plants', { headers: {} }, 401, /^{"error":40100,/, 'www-authenticate'],
        ['/plants/1', { method: 'POST' }, 405, /^{"error":40500,/, 'allow'],
        ['/plants', post(1, 'x'.repeat(20_000_000)), 413, /^{"error":41300,/, undefined],
      ] as const) {
        const seen = await fetchFrom(page, program, path, init)
        assert.ok(typeof seen === 'object')
        assert.equal(seen.status, status)
        if (typeof body === 'string') assert.equal(seen.body, body)
        else assert.match(seen.body, body)
        const { 'x-request-id': id, 'content-length': _, 'content-type': __, ...others } = seen.headers
        assert.match(id!, NEW_ID)
        assert.deepEqual(Object.keys(others), header === undefined ? [] : [header])
      }
    })
  }

  for (const [what, environment] of [
    ['if none may', {}],
    ['if only others may', { PLANT_STORE_CORS_ORIGINS: 'http://127.0.0.1:1,https://a.example' }],
  ] as const) {
    test(`reads nothing and changes nothing ${what}`, async (t) => {
      const { page } = await openElsewhere(t)
      const program = await startProgram(t, environment)
      assert.equal(await fetchFrom(page, program, '/plants'), 'TypeError')
      assert.equal(await fetchFrom(page, program, '/plants', post(1)), 'TypeError')
      // This one needs no preflight, so it is sent.
      assert.equal(await fetchFrom(page, program, '/livez', { headers: {} }), 'TypeError')
      assert.equal(await (await program.fetch('/plants')).text(), '[]')
    })
  }
})
