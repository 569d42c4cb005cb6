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

  async function openAllowed(t: TestContext, origins?: string): Promise<{ page: Page; program: Program }> {
    const { page, origin } = await openElsewhere(t)
    return {
      page,
      program: await startProgram(t, { PLANT_STORE_CORS_ORIGINS: origins ?? `https://a.example,${origin}` }),
    }
  }

  for (const [what, origins] of [
    ['that is in the list', undefined],
    ['if all may', '*'],
  ]) {
    test(`may create, list and delete ${what}, and reads the link to the next plants`, async (t) => {
      const { page, program } = await openAllowed(t, origins)
      for (const id of [1, 2]) {
        const created = await fetchFrom(page, program, '/plants', post(id))
        assert.ok(typeof created === 'object')
        assert.deepEqual([created.status, created.body], [200, '{"name":"Fern"}'])
      }
      const list = await fetchFrom(page, program, '/plants?limit=1')
      assert.ok(typeof list === 'object')
      const { link, 'x-request-id': id, ...others } = list.headers
      assert.deepEqual([list.status, list.body, link], [200, '[{"name":"Fern"}]', '<?limit=1&after=1>; rel="next"'])
      assert.match(id!, NEW_ID)
      assert.deepEqual(Object.keys(others), ['content-length', 'content-type'])
      const deleted = await fetchFrom(page, program, '/plants/1', { method: 'DELETE' })
      assert.ok(typeof deleted === 'object')
      assert.deepEqual([deleted.status, deleted.body], [204, ''])
    })
  }

  const refusals: readonly [error: number, path: string, init: RequestInit, header: string | undefined][] = [
    [40100, '/plants', { headers: {} }, 'www-authenticate'],
    [40500, '/plants/1', { method: 'POST' }, 'allow'],
    [41300, '/plants', post(1, 'x'.repeat(20_000_000)), undefined],
  ]
  for (const [error, path, init, header] of refusals) {
    test(`may read the error ${error}`, async (t) => {
      const { page, program } = await openAllowed(t)
      const seen = await fetchFrom(page, program, path, init)
      assert.ok(typeof seen === 'object')
      assert.equal((JSON.parse(seen.body) as { error: number }).error, error)
      assert.equal(seen.status, Math.floor(error / 100))
      if (header !== undefined) assert.ok(header in seen.headers)
      assert.match(seen.headers['x-request-id']!, NEW_ID)
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
