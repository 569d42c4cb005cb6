import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import type { RequestListener, ServerResponse } from 'node:http'
import { after, type TestContext } from 'node:test'
import { launch, type Browser, type Page } from 'puppeteer-core'
import { memoryStore, type PlantStoreOptions, type Store } from '../../../src/index.ts'
import { pageAssets } from '../../../src/standalone/paths/page/assets.ts'
import { TOKEN } from '../program/program.ts'
import { createListener as createProgramListener } from '../program/standalone-server.ts'
import { isRunElsewhere } from '../requirements.ts'
import { portOf, serve } from '../wire/service.ts'

const { TEST_CHROMIUM, TEST_REQUIRE_ALL } = process.env
const found = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(
  (name) => `command -v ${name}`,
)
const chromium = TEST_CHROMIUM ?? spawnSync('sh', ['-c', found.join(' || ')], { encoding: 'utf8' }).stdout.trim()
if (chromium === '' && TEST_REQUIRE_ALL === '1') throw new Error('TEST_REQUIRE_ALL is set, and there is no Chromium')

/** Why a test is skipped that takes a browser. */
export const needsChromium: string | false =
  isRunElsewhere || (chromium === '' && 'install Chromium, or set TEST_CHROMIUM to its path')

/** One browser for the tests of a file; each test has a profile of its own. */
let browser: Promise<Browser> | undefined
after(async () => (await browser)?.close())

/** The address of a service, its listener, or its options. */
type Service = string | RequestListener | Partial<PlantStoreOptions>

export type Form = 'create' | 'delete' | 'list'

/** What the tests write into each form, by the labels of its fields. */
export const FIELDS: Readonly<Record<Form, Readonly<Record<string, string>>>> = {
  create: { Id: '42', Name: 'Moss' },
  delete: { Id: '2' },
  list: {},
}

/** How the request of each form begins. */
export const REQUESTS: Readonly<Record<Form, string>> = { create: 'POST', delete: 'DELETE', list: 'GET /plants' }

const BUTTONS: Readonly<Record<Form, string>> = { create: 'Create', delete: 'Delete', list: 'List' }

type Steer = (response: ServerResponse, pass: () => void) => void

/** The page for people, as a person meets it, at a service whose responses a test may make itself, or hold back. */
export class PlantPage {
  /** Where the service is. */
  url = ''
  readonly page: Page
  /** What the browser has to say of the page: its errors, and what it refused to load. */
  readonly complaints: string[] = []
  readonly console: string[] = []
  /** What the page has asked for, but for whether the service is ready: it asks that whenever it is looked at. */
  readonly requests: string[] = []
  readonly #steers = new Map<string, Steer>()

  constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.complaints.push(String(error)))
    page.on('console', (message) => {
      this.console.push(message.text())
      // The browser says that of each status of 400 or more, and of what another origin does not let a page have.
      if (!/^(Failed to load resource|Access to fetch at)/.test(message.text())) this.complaints.push(message.text())
    })
  }

  /** A listener that may be steered. */
  around(listener: RequestListener): RequestListener {
    return (request, response) => {
      const line = `${request.method} ${request.url}`
      if (request.url !== '/readyz') this.requests.push(line)
      const pass = (): void => listener(request, response)
      const steer = [...this.#steers].find(([start]) => line.startsWith(start))?.[1]
      if (steer === undefined) pass()
      else steer(response, pass)
    }
  }

  /** Steers the responses to all requests that start so, until the function that it gives is called. */
  steer(start: string, steer: Steer): () => void {
    this.#steers.set(start, steer)
    return () => this.#steers.delete(start)
  }

  answer(start: string, status: number, type: string, body: string): () => void {
    return this.steer(start, (response) => response.writeHead(status, { 'Content-Type': type }).end(body))
  }

  /** Holds requests back. */
  hold(start: string): () => void {
    const held: (() => void)[] = []
    const stop = this.steer(start, (_response, pass) => held.push(pass))
    return () => {
      stop()
      for (const pass of held) pass()
    }
  }

  count(method: string): number {
    return this.requests.filter((request) => request.startsWith(method)).length
  }

  /** The value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    return (await this.page.evaluate(expression)) as T
  }

  text(selector: string): Promise<string> {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`)
  }

  /** What the items of the list say, name and tag, or the parts that are named. */
  plants(...parts: string[]): Promise<string[][]> {
    const selector = (parts.length === 0 ? ['name', 'tag'] : parts).map((part) => `.${part}`).join()
    return this.evaluate(
      `Array.from(document.querySelectorAll('#plants li'), (item) =>
         Array.from(item.querySelectorAll('${selector}'), (part) => part.textContent))`,
    )
  }

  /** What the service has of ada's plants. */
  async kept(query = ''): Promise<unknown> {
    return (await fetch(`${this.url}/plants${query}`, { headers: { Authorization: `Bearer ${TOKEN}` } })).json()
  }

  /** Settles once the text of an element matches. */
  async waitFor(selector: string, pattern: RegExp): Promise<void> {
    const text = `document.querySelector(${JSON.stringify(selector)}).textContent`
    await this.page.waitForFunction(`${pattern}.test(${text})`, { timeout: 10_000 }).catch(async (error: unknown) => {
      assert.match(await this.evaluate<string>(text), pattern)
      throw error
    })
  }

  /** Puts text into the field of a form that has this label, as pasting does. */
  async fill(form: string, label: string, text: string): Promise<void> {
    const field = await this.page.waitForSelector(`${form} ::-p-aria(${label})`)
    await field!.focus()
    await this.evaluate(`document.activeElement.select()`)
    await this.page.keyboard.sendCharacter(text)
  }

  async press(form: string, button: string): Promise<void> {
    await this.page.locator(`${form} ::-p-aria([name="${button}"][role="button"])`).click()
  }

  /** Presses the button of a form, whatever stands in it. */
  submit(form: Form): Promise<void> {
    return this.press(`#${form}`, BUTTONS[form])
  }

  /** Writes into a form and sends it. */
  async send(form: Form, fields = FIELDS[form]): Promise<void> {
    for (const [label, text] of Object.entries(fields)) await this.fill(`#${form}`, label, text)
    await this.submit(form)
  }

  value(id: string): Promise<string> {
    return this.evaluate(`document.querySelector('#${id}').value`)
  }

  /** The ids of the fields that are wrong. */
  wrong(): Promise<string[]> {
    return this.evaluate(`Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) => id)`)
  }

  /** Creates a plant, and settles once the page has the response and the list of what is there now. */
  async create(id: string, name: string, tag = ''): Promise<void> {
    await this.send('create', { Id: id, Name: name, ...(tag !== '' && { 'Tag (optional)': tag }) })
    await this.waitFor('#create .result', /./)
    await this.waitFor('#list .result', /./)
  }
}

/**
 * Opens the page of a service, or of the one that the program serves with these options, in a tab of its own. The test
 * fails if the browser complains of the page.
 */
export async function openPage(t: TestContext, of: Service = {}, hash = ''): Promise<PlantPage> {
  // The sandbox refuses to run as root, as in most containers; the only page is ours.
  browser ??= launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  const context = await (await browser).createBrowserContext()
  const plantPage = new PlantPage(await context.newPage())
  // A busy machine can need more than the default of 30 seconds.
  plantPage.page.setDefaultTimeout(120_000)
  t.after(async () => {
    await context.close()
    assert.deepEqual(plantPage.complaints, [])
  })
  const listener = typeof of === 'object' ? createListener(of) : of
  plantPage.url = typeof listener === 'string' ? listener : await serveListener(t, plantPage.around(listener))
  await plantPage.page.setViewport({ width: 1280, height: 900 })
  await plantPage.page.goto(`${plantPage.url}/${hash}`)
  return plantPage
}

/** Opens the page with the token of ada, and settles once her plants are in view. */
export async function openAsAda(t: TestContext, of?: Service): Promise<PlantPage> {
  const page = await openPage(t, of, `#token=${TOKEN}`)
  await page.waitFor('#list .result', /./)
  await page.waitFor('#access', /may/)
  return page
}

/** What the program serves, the page with it, in the test's own process. */
export function createListener(options: Partial<PlantStoreOptions> = {}): RequestListener {
  return createProgramListener({ tokens: { [TOKEN]: 'ada' }, ...options } as PlantStoreOptions, pageAssets('memory'))
}

/** An empty page. With it {@link openPage} opens one of another origin. */
export function blank(_request: unknown, response: ServerResponse): void {
  response.setHeader('Content-Type', 'text/html').end()
}

/** Starts a listener on a free port, and gives its address. */
export async function serveListener(t: TestContext, listener = createListener()): Promise<string> {
  return `http://127.0.0.1:${portOf(await serve(t, listener))}`
}

/** A store in which ada has so many ferns. */
export function storeOf(count: number): Store {
  const store = memoryStore()
  for (let id = 1; id <= count; id++) void store.create('ada', { id: BigInt(id), name: `Fern ${id}` })
  return store
}
